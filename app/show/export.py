"""Files that leave the dashboard: each is taken down in the audit once it is made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from app import actions
from app.ask import reader
from app.ask.cached import store_root

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", str, bytes)


def told(name: str, make: Callable[[], T], *, action: str = "export") -> Callable[[], T]:
    """What makes a file, and takes down who had it made.

    Streamlit calls it when the button is pressed, beside the page: the person is asked for now.
    """
    root, person = store_root(), reader.author()

    def made() -> T:
        content = make()
        missed = actions.noted(root, action, {"file": name}, person=person)
        if missed is not None:
            logging.getLogger(__name__).warning("%s", missed)
        return content

    return made
