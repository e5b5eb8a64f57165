"""Which causes and symptoms does this site tell apart?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.site import load_site

if TYPE_CHECKING:
    import pandas as pd

    from analytics.failures.taxonomy import Taxonomy
    from app.ask import Ask
    from data.store import Store


def taxonomy(store: Store) -> Taxonomy:
    """Causes and symptoms of the site."""
    return load_site(store.root).causes


def cause_titles(store: Store) -> dict[str, str]:
    """Title of every cause, by its name."""
    return {name: cause.title for name, cause in taxonomy(store).causes.items()}


def short_titles(store: Store) -> dict[str, str]:
    """The same without what stands in brackets, for lists."""
    return {name: title.partition(" (")[0] for name, title in cause_titles(store).items()}


def named(ask: Ask, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose column `cause` says titles, not names."""
    return rows.assign(cause=rows["cause"].replace(ask(short_titles)))
