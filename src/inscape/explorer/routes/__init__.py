"""Routes: one module for each view of the page, which makes its ``ViewRoutes`` for a session."""

from collections.abc import Callable

from inscape.explorer.questions import ViewRoutes
from inscape.explorer.routes.boolean import boolean_routes
from inscape.explorer.routes.pair import pair_routes
from inscape.explorer.routes.papers import paper_routes
from inscape.explorer.routes.slice import slice_routes
from inscape.explorer.routes.toy import toy_routes
from inscape.explorer.routes.training import training_routes
from inscape.explorer.session import Session

#: Every view of the page, in any order; the page itself orders its tabs.
VIEWS: tuple[Callable[[Session], ViewRoutes], ...] = (
    slice_routes,
    training_routes,
    pair_routes,
    toy_routes,
    boolean_routes,
    paper_routes,
)
