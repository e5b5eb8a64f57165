"""Which causes and symptoms does this site tell apart?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.site import load_site

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Taxonomy
    from data.store import Store


def taxonomy(store: Store) -> Taxonomy:
    """Causes and symptoms of the site."""
    return load_site(store.root).causes


def cause_titles(store: Store) -> dict[str, str]:
    """Title of every cause, by its name."""
    return {name: cause.title for name, cause in taxonomy(store).causes.items()}
