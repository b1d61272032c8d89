"""Routes of two networks: the refinement of both, and examples they disagree on."""

from inscape.explorer import requests as ask
from inscape.explorer.pair import pair_cells, pair_examples, pair_figure, pair_raster
from inscape.explorer.questions import Question, ViewRoutes
from inscape.explorer.session import Session


def pair_routes(session: Session) -> ViewRoutes:
    """Return what the view of two networks asks of a session."""
    subject = session.subject
    questions = {
        "pair/cells": Question(
            request=ask.CellsRequest,
            kind="long",
            thread="long",
            answer=lambda query, job: pair_cells(session, query, job),
        ),
        "pair/raster": Question(
            request=ask.RasterRequest,
            kind="quick",
            answer=lambda query, job: pair_raster(session, query),
        ),
        "pair/figure": Question(
            request=ask.PairFigureRequest,
            kind="figure",
            thread="long",
            answer=lambda query, job: pair_figure(session, query),
        ),
        "pair/examples": Question(
            request=ask.PairRequest,
            kind="pair examples",
            thread="similar",
            answer=lambda query, job: pair_examples(subject),
        ),
    }
    return ViewRoutes(
        name="pair",
        questions=questions,
        about=lambda: {"title": subject.other_title, "code": subject.other_code},
    )
