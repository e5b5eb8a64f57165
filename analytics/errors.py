"""Errors of the analyses: each says argument, rule, value found and remedy."""


class AnalysisError(ValueError):
    """An analysis cannot answer what was asked; the message says why and what to do."""


class OutOfRangeError(AnalysisError):
    """A number lies outside the range in which the quantity is defined."""

    def __init__(self, argument: str, rule: str, found: object, remedy: str) -> None:
        super().__init__(f"{argument} must be {rule}, got {found}: {remedy}")


class ShapeError(AnalysisError):
    """Arrays that belong together differ in length, or a column is missing."""
