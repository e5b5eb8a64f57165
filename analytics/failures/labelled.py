"""Failures that a log labelled in its own words, as verdicts of our taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Taxonomy


def verdicts_of_labels(labelled: pd.DataFrame, taxonomy: Taxonomy) -> pd.DataFrame:
    """Counts of labelled node failures by cause and domain of the taxonomy.

    Parameters
    ----------
    labelled : DataFrame
        Columns source (the scheme: lanl, pnnl or a site's own), cause and subcause as the source
        labels them (null where it does not), day, n_failures.
    taxonomy : Taxonomy
        The site's. A label that it does not know is ``unknown``.

    Returns
    -------
    DataFrame
        Columns as `analytics.failures.summary.failure_summary` takes verdicts: cause, domain, day,
        n_attempts, n_exposed and n_counted (all),
        n_lost (each is a lost node), n_logged (none has an attempt), gpu_seconds (NaN:
        not known).

    Examples
    --------
    >>> from analytics.failures.taxonomy import taxonomy
    >>> rows = pd.DataFrame({"source": ["pnnl", "mine"], "cause": ["DIMM", "gremlin"],
    ...     "subcause": [None, None], "day": ["2004-01-01"] * 2, "n_failures": [3, 1]})
    >>> verdicts_of_labels(rows, taxonomy())[["cause", "domain", "n_attempts"]].values.tolist()
    [['host_memory', 'hardware', 3], ['unknown', 'unknown', 1]]
    """
    keys = ["source", "cause", "subcause"]
    names = {
        row: _cause_of(*row, taxonomy=taxonomy)
        for row in labelled[keys]
        .astype(object)
        .drop_duplicates()
        .itertuples(index=False, name=None)
    }
    cause = [names[row] for row in labelled[keys].astype(object).itertuples(index=False, name=None)]
    return pd.DataFrame(
        {
            "cause": cause,
            "domain": [taxonomy.domain_of(one) for one in cause],
            "day": labelled["day"],
            "n_attempts": labelled["n_failures"],
            "n_exposed": labelled["n_failures"],
            "n_counted": labelled["n_failures"],
            "n_lost": labelled["n_failures"],
            "n_logged": labelled["n_failures"],
            "gpu_seconds": float("nan"),
        }
    )


def _cause_of(source: object, cause: object, subcause: object, *, taxonomy: Taxonomy) -> str:
    """Cause of one label; unknown where the scheme or the label is."""
    words = [str(one) for one in (cause, subcause) if not pd.isna(one)]  # type: ignore[call-overload]
    if not words or source not in taxonomy.schemes:
        return "unknown"
    return taxonomy.cause_of(str(source), "/".join(words)) or "unknown"
