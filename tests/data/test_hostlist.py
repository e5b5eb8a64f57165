"""Host lists as Slurm writes them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.hostlist import MAX_HOSTS, HostListError, expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[001-004,7]", ["n001", "n002", "n003", "n004", "n7"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("a[1,3],b[2]", ["a1", "a3", "b2"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
        ("r[1-2]n[3-4]x,y", ["r1n3x", "r1n4x", "r2n3x", "r2n4x", "y"]),
        ("gpu-a.example.org", ["gpu-a.example.org"]),
        ("node[1001-1002,1073]", ["node1001", "node1002", "node1073"]),
        (" n1 ", ["n1"]),
        ("n1, n2", ["n1", "n2"]),
        ("n1,n1", ["n1", "n1"]),
        ("n[1,1]", ["n1", "n1"]),
        ("[1-2]", ["1", "2"]),
        (
            "n[000000000000000001-000000000000000002]",
            ["n000000000000000001", "n000000000000000002"],
        ),
    ],
)
def test_a_list_names_its_hosts_in_order(text: str, hosts: list[str]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize("text", ["", "  ", "None assigned", "none", "(null)", "N/A", "Unknown"])
def test_words_for_nothing_name_no_host(text: str) -> None:
    assert expand(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-3", "host list is broken"),
        ("n1-3]", "host list is broken"),
        ("n[]", "host list is broken"),
        ("n[a-b]", "host list is broken"),
        ("n[1-]", "host list is broken"),
        ("n[-1]", "host list is broken"),
        ("n[1--2]", "host list is broken"),
        ("n[1,,2]", "host list is broken"),
        ("n[[1-2]]", "host list is broken"),
        ("n1,,n2", "host list is broken"),
        ("n1 n2", "host list is broken"),
        ("n[1 - 2]", "host list is broken"),
        (f"n[{'9' * 5000}]", "host list is broken"),
        ("n[\u0661-\u0662]", "host list is broken"),
        ("n[3-1]", "host list has a descending range"),
        ("n[1-1000000000]", "host list names over 200,000 hosts"),
        ("n[1-150000,1-150000]", "host list names over 200,000 hosts"),
        ("a[1-150000],b[1-150000]", "host list names over 200,000 hosts"),
        ("r[1-1000]n[1-1000]", "host list names over 200,000 hosts"),
        ("r[1-99999]s[1-99999]t[1-99999]u[1-99999]", "host list names over 200,000 hosts"),
    ],
)
def test_a_broken_list_is_refused(text: str, message: str) -> None:
    with pytest.raises(HostListError, match=message):
        expand(text)


@pytest.mark.benchmark
def test_a_list_of_too_many_hosts_is_refused_before_it_is_written_out() -> None:
    begin = time.process_time()
    for text in (
        "n[1-1000000000]",
        "n[1-150000,1-150000]",
        "a[1-150000],b[1-150000]",
        "r[1-1000]n[1-1000]",
        "r[1-99999]s[1-99999]t[1-99999]u[1-99999]",
    ):
        with pytest.raises(HostListError, match="host list names over 200,000 hosts"):
            expand(text)
    assert time.process_time() - begin < 2


def test_the_longest_list_is_read() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    prefix=st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True),
    ranges=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1, max_size=4),
    width=st.integers(1, 5),
)
def test_ranges_expand_as_they_were_compressed(
    prefix: str, ranges: list[tuple[int, int]], width: int
) -> None:
    written = ",".join(
        f"{first:0{width}}-{first + n:0{width}}" if n else f"{first:0{width}}"
        for first, n in ranges
    )
    hosts = [
        f"{prefix}{number:0{width}}"
        for first, n in ranges
        for number in range(first, first + n + 1)
    ]
    assert expand(f"{prefix}[{written}]") == hosts


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="n01-,[] \u00e9", max_size=12))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except HostListError:
        return
    assert all(host and not set(host) & set("[], ") for host in hosts)
