"""Which of the names that sources write are names of one node."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Rule = Literal["case", "domain", "alias", "ambiguous"]
SCHEDULER, LOG, STATED = 0, 10, 20
"""Where a name is written: by the scheduler or an inventory (below LOG, the best known first), in
logs alone (below STATED), or in site.toml alone."""
_ADDRESS = re.compile(r"\d+(\.\d+)*|.*:.*")


@dataclass(frozen=True)
class Identity:
    """Of a name the node that it means, and why."""

    node: str
    rule: Rule
    """What tells: the same but for `case`, or without its `domain`; an `alias` of site.toml; or,
    of a name left a node of its own, that it is `ambiguous` which node of the scheduler it means.
    """


def identities(
    places: Mapping[str, int], stated: Mapping[str, Collection[str]] | None = None
) -> dict[str, Identity]:
    """Names of one cluster that mean a node of another name, or nobody can tell which one.

    Two names are one node where they are equal without case and without domain, the text from the
    first dot on. Where the scheduler itself writes a short name in two domains or more, these are
    several hosts: there names are compared whole, and one without a domain, or of a domain that
    the scheduler does not write, is ambiguous. Addresses are never shortened. The node is called
    as the best source writes it; of several spellings there the shortest, lower case before upper.

    Parameters
    ----------
    places
        Name -> where it is written, see SCHEDULER, LOG and STATED; the least of several.
    stated
        Node -> its other names, as site.toml's section [nodes] states them; a node without any
        other name is never taken for another.

    Examples
    --------
    >>> found = identities({"gpu1": SCHEDULER, "GPU1.cluster.local": LOG, "login1": LOG})
    >>> {name: one.node for name, one in found.items()}
    {'GPU1.cluster.local': 'gpu1'}
    >>> [*identities({"n1.a": SCHEDULER, "n1.b": SCHEDULER, "n1": LOG}).values()]
    [Identity(node='n1', rule='ambiguous')]
    """
    stated = stated or {}
    target, apart = _stated(stated)
    known = dict(places)
    known |= {name: STATED for names in stated.values() for name in names if name not in known}
    meant = {name: _meant(name, target, apart) for name in known}
    domains = _domains(known, meant, apart)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, text in meant.items():
        whole = text in apart or len(domains[short_name(text)]) > 1
        groups[text if whole else short_name(text)].append(name)
    found: dict[str, Identity] = {}
    for names in groups.values():
        if all(known[name] == STATED for name in names):
            continue  # site.toml names a node that no record does
        node = _called(names, known, target)
        for name in names:
            rule = _rule(name, node, target)
            if rule is None and _is_ambiguous(name, meant[name], known, domains):
                rule = "ambiguous"
            if rule is not None and meant[name] not in apart | {""}:
                found[name] = Identity(node, rule)
    return found


def clusters_knowing(
    hosts: Collection[str],
    known: Mapping[str, Collection[str]],
    stated: Mapping[str, Collection[str]] | None = None,
) -> dict[str, frozenset[str]]:
    """Clusters that know each host, by any name that `identities` takes for the same node.

    A host written with its domain is of the clusters that write this very name, where any does;
    else, like one without, of all that write its short name in whatever domain.

    Parameters
    ----------
    hosts
        Names whose cluster is asked for.
    known
        Cluster -> names of its nodes, as its records write them.
    stated
        Node -> its other names, as for `identities`.

    Examples
    --------
    >>> known = {"a": ["gpu1", "gpu2.a.org"], "b": ["gpu2.b.org"]}
    >>> found = clusters_knowing(["GPU1.mgmt", "gpu2", "gpu2.b.org", "login1"], known)
    >>> {name: sorted(clusters) for name, clusters in found.items()}
    {'GPU1.mgmt': ['a'], 'gpu2': ['a', 'b'], 'gpu2.b.org': ['b'], 'login1': []}
    """
    target, apart = _stated(stated or {})
    whole: dict[str, set[str]] = defaultdict(set)
    short: dict[str, set[str]] = defaultdict(set)
    for cluster, names in known.items():
        for name in names:
            text = _meant(name, target, apart)
            whole[text].add(cluster)
            if text not in apart:
                short[short_name(text)].add(cluster)
    found: dict[str, frozenset[str]] = {}
    for host in hosts:
        text = _meant(host, target, apart)
        by_whole = whole.get(text, set()) if text in apart or text != short_name(text) else set()
        by_short = set() if text in apart else short.get(short_name(text), set())
        found[host] = frozenset(by_whole or by_short)
    return found


def folded(name: str) -> str:
    """A name as names are compared: lower case, without the dot that ends a whole domain."""
    return name.strip().lower().rstrip(".")


def short_name(name: str) -> str:
    """A name without its domain; an address, or what begins with a number and a dot, whole.

    Examples
    --------
    >>> [short_name(name) for name in ("gpu1.cluster.local", "10.0.0.17", "fe80::1", "12.3")]
    ['gpu1', '10.0.0.17', 'fe80::1', '12.3']
    """
    head = name.partition(".")[0]
    return name if not head or head.isdigit() or _ADDRESS.fullmatch(name) else head


def _stated(stated: Mapping[str, Collection[str]]) -> tuple[dict[str, str], set[str]]:
    """The node of each alias, and the nodes that are never taken for another."""
    target = {folded(name): node for node, names in stated.items() for name in names}
    return target, {folded(node) for node, names in stated.items() if not names}


def _meant(name: str, target: Mapping[str, str], apart: Collection[str]) -> str:
    """The folded name, or that of the node whose alias it is, with its domain or without."""
    text = folded(name)
    if text in apart:
        return text
    node = target.get(text) or target.get(short_name(text))
    return text if node is None else folded(node)


def _domains(
    known: Mapping[str, int], meant: Mapping[str, str], apart: Collection[str]
) -> dict[str, set[str]]:
    """Short name -> domains in which the scheduler writes it."""
    domains: dict[str, set[str]] = defaultdict(set)
    for name, place in known.items():
        text = meant[name]
        if place < LOG and text not in apart:
            domains[short_name(text)] |= {text[len(short_name(text)) :]} - {""}
    return domains


def _called(names: Collection[str], known: Mapping[str, int], target: Mapping[str, str]) -> str:
    """What the node of these names is called: not by an alias where there is another name."""
    own = [name for name in names if not _is_alias(name, target)]
    if not own:
        (any_name, *_) = names
        return target.get(folded(any_name)) or target[short_name(folded(any_name))]
    return min(own, key=lambda name: (known[name], len(name), name != name.lower(), name))


def _is_alias(name: str, target: Mapping[str, str]) -> bool:
    """Whether site.toml says that a name is another one's."""
    return folded(name) in target or short_name(folded(name)) in target


def _rule(name: str, node: str, target: Mapping[str, str]) -> Rule | None:
    """Why a name means a node; None where it is its own name."""
    if name == node:
        return None
    if _is_alias(name, target):
        return "alias"
    return "case" if folded(name) == folded(node) else "domain"


def _is_ambiguous(
    name: str, text: str, known: Mapping[str, int], domains: Mapping[str, Collection[str]]
) -> bool:
    """Whether it could be any of several nodes of the scheduler."""
    short = short_name(text)
    its_own = known[name] < LOG and text != short
    return (
        len(domains.get(short, ())) > 1
        and not its_own
        and text[len(short) :] not in (domains[short])
    )
