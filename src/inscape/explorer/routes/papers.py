"""Routes of the papers: their entries, what was found for each, and its figure."""

from inscape.explorer.paper_pages import FigureRequest, ItemRequest, PaperPages, PaperRequest
from inscape.explorer.questions import Question, ViewRoutes
from inscape.explorer.session import Session


def paper_routes(session: Session) -> ViewRoutes:
    """Return what the pages of the papers ask; of the session only the folder of records."""
    pages = PaperPages(session.results)
    return ViewRoutes(
        name="papers",
        about=pages.about,
        questions={
            "papers/paper": Question(
                request=PaperRequest,
                kind="paper",
                thread="lab",
                answer=lambda asked, job: pages.paper(asked),
            ),
            "papers/item": Question(
                request=ItemRequest,
                kind="paper item",
                thread="lab",
                answer=lambda asked, job: pages.item(asked),
            ),
            "papers/figure": Question(
                request=FigureRequest,
                kind="paper figure",
                thread="long",  # as all figures: matplotlib draws one at a time
                answer=lambda asked, job: pages.figure(asked),
            ),
        },
    )
