"""Candidates among transfers between stages: slow links over a boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.candidates import Candidate
from analytics.training.stragglers.collective_causes import (
    LEAST_SHARE,
    MOST_ASKED,
    excess,
    over_usual,
    usual_ratio,
)
from analytics.training.stragglers.counterfactual import Change
from analytics.training.stragglers.medians import median

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.training.stragglers.candidates import Number, Target
    from analytics.training.stragglers.what_if import WhatIf

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Key: TypeAlias = tuple[int, int, int]
    Pairs: TypeAlias = dict[Key, list[tuple[int, int]]]
_SENDS: Final = (kind.FORWARD_SEND, kind.BACKWARD_SEND)


@dataclass(frozen=True)
class _Link:
    """A slow link, in one direction."""

    key: Key
    """Whether forward, stage of the sender, stage of the receiver."""
    dp: int | None
    """Data-parallel rank; None for all."""
    seconds: float
    """Time above the usual one, a step, if nothing hid it."""
    ratio: Floats
    """Usual over own cost, (steps, ranks); 1 elsewhere."""
    over: float | None
    """Its time over the usual one; None where that is nothing."""

    @property
    def place(self) -> tuple[int, int, int | None]:
        """Both stages, whichever way it runs, and the rank."""
        return (min(self.key[1:]), max(self.key[1:]), self.dp)


def pp_links(model: WhatIf) -> Iterator[Candidate]:
    """Transfers over a boundary between stages that take longer than others of their direction."""
    ops, own = model.trace.operations, model.costs.own
    links: Pairs = {}
    optypes, stages = ops.optype.tolist(), ops.stage.tolist()
    for node in model.graph.nodes:
        if len(node.members) == 2 and optypes[node.members[0]] in kind.P2P:
            one, other = node.members
            send, receive = (one, other) if optypes[one] in _SENDS else (other, one)
            forward = int(optypes[send] == kind.FORWARD_SEND)
            links.setdefault((forward, stages[send], stages[receive]), []).append((send, receive))
    found = []
    for forward in (0, 1):
        mine = [key for key in links if key[0] == forward]
        if mine:
            found += _slow_links(mine, [own[np.array(links[key])] for key in mine])
    least = LEAST_SHARE * model.trace.step_seconds.mean()
    by_place: dict[tuple[int, int, int | None], list[_Link]] = {}
    for link in found:
        if link.seconds > least:
            by_place.setdefault(link.place, []).append(link)
    ranked = sorted(by_place.items(), key=lambda item: -sum(link.seconds for link in item[1]))
    for place, both in ranked[:MOST_ASKED]:
        yield _link_candidate(model, place, links=both, pairs=links)


def _slow_links(keys: list[Key], own: list[Floats]) -> list[_Link]:
    """Links of a direction that are slow; costs as (pairs, 2, steps, ranks) each."""
    places = np.arange(len(keys))
    sides = [np.stack([median(one[:, side], axis=0) for one in own]) for side in (0, 1)]
    found = [excess(typical, places) for typical in sides]
    ratio = np.minimum(*(usual_ratio(one) for one in found))
    above = np.maximum(*(one.seconds for one in found))
    longest = np.maximum(*sides)
    links = []
    for at, key in enumerate(keys):
        seconds = above[at] * len(own[at])
        n_slow = int((above[at] > above[at].max() / 2).sum())
        if not seconds.max() > 0:
            continue
        everywhere = len(seconds) > 1 and 2 * n_slow > len(seconds)
        ranks = [None] if everywhere else np.flatnonzero(seconds > 0).tolist()
        for dp in ranks:
            chosen = (
                np.ones(len(seconds), dtype=np.bool_)
                if dp is None
                else (np.arange(len(seconds)) == dp)
            )
            spent = float(longest[at][:, chosen].mean())
            links.append(
                _Link(
                    key,
                    dp,
                    float(seconds[chosen].max()),
                    np.where(chosen, ratio[at], 1.0),
                    over_usual(spent, float(above[at][chosen].mean())),
                )
            )
    return links


def _link_candidate(
    model: WhatIf,
    place: tuple[int, int, int | None],
    *,
    links: list[_Link],
    pairs: Pairs,
) -> Candidate:
    low, high, dp = place
    ranks = model.trace.ranks
    named: list[Number] | None = None
    if dp is not None and ranks is not None:
        named = [int(ranks[dp, low]), int(ranks[dp, high])]
    places = [np.array(pairs[link.key]).ravel() for link in links]
    ratio = [
        np.broadcast_to(link.ratio, (len(at), *link.ratio.shape))
        for link, at in zip(links, places, strict=True)
    ]
    ways = {"forward" if link.key[0] else "backward" for link in links}
    evidence: dict[str, Number] = {
        "seconds_above_usual": sum(link.seconds for link in links),
        "time_over_usual_ratio": max(link.over or 0.0 for link in links) or None,
        "n_transfers": sum(len(pairs[link.key]) for link in links),
    }
    target: Target = {
        "dp_rank": dp,
        "stages": [low, high],
        "direction": "both" if len(ways) == 2 else min(ways),
        "ranks": named,
    }
    return Candidate(
        "pp_link", target, Change(np.concatenate(places), np.concatenate(ratio)), evidence
    )
