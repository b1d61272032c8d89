"""Routes of the papers: their entries, what was found for each, and its figure."""

from inscape.explorer.paper_pages import ItemRequest, PaperFigureRequest, PaperPages, PaperRequest
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
                answer=lambda query, job: pages.paper(query),
            ),
            "papers/item": Question(
                request=ItemRequest,
                kind="paper item",
                thread="lab",
                answer=lambda query, job: pages.item(query),
            ),
            "papers/figure": Question(
                request=PaperFigureRequest,
                kind="paper figure",
                thread="long",  # as all figures: matplotlib draws one at a time
                answer=lambda query, job: pages.figure(query),
            ),
        },
    )
