"""Which values do the filters give to an ad hoc query?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.queries.schema import Parameter, parameters

if TYPE_CHECKING:
    from data.filters import Selection


def in_words(selection: Selection) -> list[dict[str, str]]:
    """Name, type and value of each parameter."""
    return [
        {"name": f"${each.name}", "type": each.type, "value": _value(each)}
        for each in parameters(selection)
    ]


def _value(parameter: Parameter) -> str:
    """The value in words."""
    if not parameter.open:
        value = parameter.value
        return f"{value:%Y-%m-%d %H:%M}" if parameter.type == "TIMESTAMPTZ" else str(value)
    if parameter.type == "TIMESTAMPTZ":
        return f"{parameter.value.year:04d}: all time"
    return "NULL: all" if parameter.value is None else f"{parameter.value}: all"
