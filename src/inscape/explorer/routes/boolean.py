"""Routes of the Boolean lab: what is known of a function, and how often training finds it."""

from inscape.explorer.boolean_lab import (
    MOST,
    FunctionFigureRequest,
    FunctionRequest,
    TrialRequest,
    function_facts,
    function_figure,
    trial_facts,
)
from inscape.explorer.questions import Question, ViewRoutes
from inscape.explorer.session import Session


def boolean_routes(session: Session) -> ViewRoutes:
    """Return what the Boolean lab asks; of the session it needs only the folder of records."""
    return ViewRoutes(
        name="boolean",
        about=lambda: {"most": MOST},
        questions={
            "boolean/function": Question(
                request=FunctionRequest,
                kind="boolean",
                thread="lab",
                answer=lambda query, job: function_facts(query, session.results),
            ),
            "boolean/figure": Question(
                request=FunctionFigureRequest,
                kind="figure",
                thread="long",  # as all figures: matplotlib draws one at a time
                answer=lambda query, job: function_figure(query),
            ),
            "boolean/trials": Question(
                request=TrialRequest,
                kind="trials",
                thread="lab",
                answer=lambda query, job: trial_facts(query),
            ),
        },
    )
