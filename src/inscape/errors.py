"""The errors that Inscape raises beside ValueError and TypeError."""


class UnsupportedModelError(ValueError):
    """A model holds something that an analysis cannot read; the text names it and its place."""


class DataError(ValueError):
    """A data set or a file of it is missing, damaged or not what its name says."""


class BudgetError(RuntimeError):
    """A computation would pass the memory or time that it was given."""
