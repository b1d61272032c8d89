"""Full names of what the instruments cite by a short key."""

SOURCES = {
    "volhejn2020smoothness": (
        "Václav Volhejn, “Smoothness of Functions Learned by Neural Networks”, "
        "bachelor thesis, Charles University, 2020"
    ),
}


def citation(cites: str) -> str:
    """Return a citation with its key spelled out, where the key is known.

    >>> citation("volhejn2020smoothness, Eq. (3.1)").endswith("2020. Eq. (3.1)")
    True
    """
    key, _, place = cites.partition(", ")
    return f"{SOURCES[key]}. {place}".strip() if key in SOURCES else cites
