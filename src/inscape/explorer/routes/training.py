"""Routes of the training: its curves, and films of a window."""

from inscape.explorer import requests as ask
from inscape.explorer.film import film
from inscape.explorer.questions import Question, ViewRoutes
from inscape.explorer.session import Session
from inscape.explorer.training import about_training, training_curves


def training_routes(session: Session) -> ViewRoutes:
    """Return what the view of a training asks of a session."""
    subject = session.subject
    questions = {
        "training/curves": Question(
            request=ask.CurvesRequest,
            kind="curves",
            thread="similar",
            answer=lambda query, job: training_curves(subject, query.steps),
        ),
        "training/film": Question(
            request=ask.FilmRequest,
            kind="film",
            thread="long",
            answer=lambda query, job: film(subject, session.plane_of(query), query, job),
        ),
    }
    return ViewRoutes(name="training", questions=questions, about=lambda: about_training(subject))
