"""Routes of the slice: a plane, its windows, and what lies in them; other views ask these too."""

from inscape.explorer import requests as ask
from inscape.explorer.questions import Question, ViewRoutes
from inscape.explorer.session import Session


def slice_routes(session: Session) -> ViewRoutes:
    """Return what the slice asks of a session."""
    questions = {
        "plane": Question(
            request=ask.PlaneRequest, kind="quick", answer=lambda a, job: session.plane(a)
        ),
        "raster": Question(
            request=ask.RasterRequest, kind="quick", answer=lambda a, job: session.raster(a)
        ),
        "cells": Question(
            request=ask.CellsRequest, kind="long", thread="long", answer=session.cells
        ),
        "cell": Question(
            request=ask.CellRequest, kind="hover", answer=lambda a, job: session.cell(a)
        ),
        "colours": Question(
            request=ask.ColoursRequest, kind="colour", answer=lambda a, job: session.colours(a)
        ),
        "figure": Question(
            request=ask.FigureRequest,
            kind="figure",
            thread="long",
            answer=lambda a, job: session.figure(a),
        ),
        "saved": Question(
            request=ask.SavedRequest,
            kind="saved",
            thread="long",
            answer=lambda a, job: session.saved(a),
        ),
        "point": Question(
            request=ask.PointRequest, kind="point", answer=lambda a, job: session.point(a)
        ),
        "similar": Question(
            request=ask.PointRequest,
            kind="similar",
            thread="similar",
            answer=lambda a, job: session.similar(a),
        ),
        "made_by": Question(
            request=ask.MadeByRequest,
            kind="made by",
            thread="similar",
            answer=lambda a, job: session.made_by(a),
        ),
        "segment": Question(
            request=ask.SegmentRequest, kind="segment", answer=lambda a, job: session.segment(a)
        ),
        "examples": Question(
            request=ask.ExamplesRequest, kind="examples", answer=lambda a, job: session.examples(a)
        ),
    }
    return ViewRoutes(name="slice", questions=questions)
