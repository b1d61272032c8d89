"""Full names of what the instruments cite by a short key."""

SOURCES = {
    "bartlett2017spectrally": (
        "Peter L. Bartlett, Dylan J. Foster and Matus Telgarsky, “Spectrally-normalized margin "
        "bounds for neural networks”, NeurIPS 2017"
    ),
    "courtois2025path": (
        "Adrien Courtois, Jean-Michel Morel and Pablo Arias, “Can neural networks extrapolate? "
        "Discussion of a theorem by Pedro Domingos”, 2022"
    ),
    "kubo2019implicit": (
        "Masayoshi Kubo, Ryotaro Banno, Hidetaka Manabe and Masataka Minoji, “Implicit "
        "regularization in over-parameterized neural networks”, arXiv:1903.01997, 2019"
    ),
    "lejeune2019implicit": (
        "Daniel LeJeune, Randall Balestriero, Hamid Javadi and Richard G. Baraniuk, “Implicit "
        "rugosity regularization via data augmentation”, arXiv:1905.11639, 2019"
    ),
    "liang2019fisher": (
        "Tengyuan Liang, Tomaso Poggio, Alexander Rakhlin and James Stokes, “Fisher-Rao metric, "
        "geometry, and complexity of neural networks”, AISTATS 2019"
    ),
    "nagarajan2019generalization": (
        "Vaishnavh Nagarajan and J. Zico Kolter, “Generalization in deep networks: the role of "
        "distance from initialization”, arXiv:1901.01672, 2019"
    ),
    "sattelberg2026linearity": (
        "Ben Sattelberg, “Local Linearity of ReLU Neural Networks”, PhD dissertation, "
        "Colorado State University, 2026"
    ),
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
