"""A fabric as it is judged: hosts and their switches, and a matrix of each level and size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import OutOfRangeError
from analytics.nodes.links.matrix import Bursts, Tiers, by_size, found_tiers, mean_of, of_hosts
from analytics.nodes.links.samples import coded
from analytics.nodes.links.search import Level, deviation, residuals

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints
    from analytics.nodes.links.matrix import DelayMatrix
    from analytics.nodes.links.samples import DelaySamples
    from analytics.nodes.links.search import LevelName


@dataclass(frozen=True)
class View:
    """One level, seen by messages of one class of sizes, or by all together."""

    level: Level
    sizes: tuple[float, ...] | None
    """Bytes; empty where nobody says them, None of all together."""

    @property
    def name(self) -> LevelName:
        """Its level's."""
        return self.level.name


@dataclass(frozen=True)
class Fabric:
    """What was measured between which hosts."""

    names: tuple[str, ...]
    """Endpoints."""
    host: Ints
    """Place of each endpoint's host in `hosts`."""
    hosts: tuple[str, ...]
    matrices: tuple[DelayMatrix, ...]
    tiers: Tiers | None
    """Switch of each host; None where none is known."""
    group_names: tuple[str, ...]
    """Of the switches that are stated; empty where delays told them."""

    @classmethod
    def of_samples(cls, samples: DelaySamples) -> Fabric:
        """The fabric behind samples; switches as stated, else as delays show them.

        Raises
        ------
        OutOfRangeError
            Where no pair of endpoints was measured.
        """
        host, hosts = coded(samples.hosts)
        matrices = tuple(by_size(samples))
        if not any(np.isfinite(matrix.log_us).any() for matrix in matrices):
            remedy = "give transfers between different endpoints"
            raise OutOfRangeError("samples", "of at least one pair of endpoints", "none", remedy)
        tiers, kinds = _stated(samples, hosts)
        if tiers is None:
            tiers = _found(matrices, host, len(hosts))
        return cls(samples.names, host, hosts, matrices, tiers, kinds)

    @cached_property
    def n(self) -> Ints:
        """Samples of each pair of endpoints."""
        total: Ints = np.sum([matrix.n for matrix in self.matrices], axis=0)
        return total

    @cached_property
    def n_of_hosts(self) -> Ints:
        """Samples of each pair of hosts."""
        return self._by_host(self.n)

    def _by_host(self, of_endpoints: Ints) -> Ints:
        """Sums over the pairs of endpoints of each pair of hosts."""
        total = np.zeros((len(self.hosts),) * 2, dtype=np.int64)
        np.add.at(total, (self.host[:, None], self.host[None, :]), of_endpoints)
        return total

    def levels(self, left_out: Bools) -> list[list[View]]:
        """Views of each level, hosts first; pairs of endpoints left out are unknown."""
        tier = np.zeros((len(self.hosts),) * 2, dtype=np.int64)
        tier, group = (self.tiers.tier, self.tiers.group) if self.tiers else (tier, None)
        device_tier = tier[np.ix_(self.host, self.host)]
        same = self.host[:, None] == self.host[None, :]
        levels: dict[LevelName, list[View]] = {"host": [], "device": [], "inside": []}
        for matrix in self.matrices:
            log_us = np.where(left_out, np.nan, matrix.log_us)
            near = of_hosts(log_us, self.host, len(self.hosts))
            pairs = np.isfinite(log_us).astype(np.int64)
            bursts = Bursts(matrix.excess, matrix.n, pairs, matrix.n_sizes)
            of_host = replace(bursts, n=self._by_host(matrix.n), pairs=self._by_host(pairs))
            levels["host"].append(View(Level(near, tier, group, of_host), matrix.sizes))
            if len(self.hosts) == len(self.host):
                continue
            far = Level(np.where(same, np.nan, log_us), device_tier, None, bursts, "device")
            inside = Level(
                np.where(same, log_us, np.nan),
                np.zeros_like(device_tier),
                self.host,
                bursts,
                "inside",
            )
            levels["device"].append(View(far, matrix.sizes))
            levels["inside"].append(View(inside, matrix.sizes))
        return [views for level in levels.values() if (views := _with_all(level))]

    def of_endpoints(self, view: View, cells: Bools) -> Bools:
        """Pairs of a view as pairs of endpoints."""
        return cells[np.ix_(self.host, self.host)] if view.name == "host" else cells

    def named(self, view: View) -> tuple[str, ...]:
        """Names of the rows and columns of a view."""
        return self.hosts if view.name == "host" else self.names

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Hosts behind each switch."""
        if self.tiers is None:
            return ()
        group, rest = self.tiers.group, self.tiers.rest
        return tuple(
            tuple(host for host, of in zip(self.hosts, group, strict=True) if of == at)
            for at in np.unique(group)
            if at != rest
        )


def _with_all(views: list[View]) -> list[View]:
    """The views that hold something, and where these are several, their mean."""
    some = [view for view in views if np.isfinite(view.level.log_us).any()]
    if len(some) < 2:
        return some
    mean = mean_of([residuals(view.level, None) for view in some])
    every = [view.level.bursts for view in some]
    bursts = Bursts(
        np.sort(np.concatenate([of_view.excess for of_view in every])),
        np.sum([of_view.n for of_view in every], axis=0),
        np.max([of_view.pairs for of_view in every], axis=0),
        sum(of_view.n_sizes for of_view in every),
    )
    return [*some, View(replace(some[0].level, log_us=mean, bursts=bursts), None)]


def _stated(samples: DelaySamples, hosts: tuple[str, ...]) -> tuple[Tiers | None, tuple[str, ...]]:
    """Switch of each host as stated, one of its own where it has none."""
    if not samples.group_of:
        return None, ()
    host_of = dict(zip(samples.names, samples.hosts, strict=True))
    of_host = {host_of.get(name, name): group for name, group in samples.group_of.items()}
    codes, kinds = coded(tuple(of_host.get(host) for host in hosts))
    if not kinds:
        return None, ()
    without = codes < 0
    return Tiers(np.where(without, len(kinds) + np.cumsum(without) - 1, codes)), kinds


def _found(matrices: tuple[DelayMatrix, ...], host: Ints, n_hosts: int) -> Tiers | None:
    """Switch of each host as the delays of the first size that shows any tell it."""
    for matrix in matrices:
        near = of_hosts(matrix.log_us, host, n_hosts)
        if np.isfinite(near).any():
            tiers = found_tiers(near, deviation(near))
            if tiers is not None:
                return tiers
    return None
