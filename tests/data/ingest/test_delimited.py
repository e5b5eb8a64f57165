"""Torn lines of delimited text are found and mended, and no neighbour is lost."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from data.ingest.formats import delimited
from data.ingest.formats.delimited import Doubtful, Line, repaired, scan
from data.ingest.readers.schedulers.sacct_fields import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., Any]

PHASES = (Phase.explicit, Phase.generate)
"""An example costs a tenth of a second: too much to shrink."""
LAYOUTS = (
    "JobID|JobName|User|State|Submit|End|NodeList|SubmitLine",
    "Account|Comment|JobID|State|Submit|JobName|End|AllocTRES|SubmitLine|WorkDir",
    "JobID|JobIDRaw|State|SubmitLine|End",
    "State|JobID|Comment|Submit|JobName|NNodes",
    "JobID|State|Submit|JobName",
)
TEXTS = {"JobName": "name", "SubmitLine": "submit_line"}
COLUMNS = {"State": "state", "NodeList": "node_list", "User": "user", "Account": "account"}
WORDS = ("a", "|", "||", "\n", "\n\n", "\\", '"', "'", " ", "\u00e9", "x=1", "-n4", "\t", "\\n")
texts = st.lists(st.sampled_from(WORDS), max_size=7).map("".join).map(str.strip)
records = st.fixed_dictionaries(
    {
        "State": st.sampled_from(["COMPLETED", "FAILED", "CANCELLED by 1000", "NODE_FAIL"]),
        "NodeList": st.sampled_from(["n1", "n[1-3,7]", "None assigned"]),
        "User": st.sampled_from(["ada", "grace"]),
        "Account": st.sampled_from(["ml", "physics"]),
        "JobName": texts,
        "SubmitLine": texts,
        "Comment": texts.map(lambda text: text.replace("\n", " ")),  # in front of every sure field
    }
)


def fields(layout: str, number: int, values: dict[str, str]) -> list[str]:
    """The fields of a record in the order of a layout."""
    fixed = {
        "JobID": str(1000 + number),
        "JobIDRaw": str(1000 + number),
        "Submit": "2024-03-01T10:00:00",
        "End": "2024-03-01T11:00:00",
        "NNodes": "3",
        "AllocTRES": "cpu=4,gres/gpu=8",
        "WorkDir": "/home/ada",
    }
    return [(fixed | values)[name] for name in layout.split("|")]


def expected(layout: str, values: dict[str, str]) -> dict[str, str | None]:
    """What the reader should make of a record."""
    kept = {
        name: values[column].replace("\n", r"\n") or None
        for column, name in TEXTS.items()
        if column in layout.split("|")
    }
    plain = {
        name: {"None assigned": None, "CANCELLED by 1000": "CANCELLED"}.get(value, value)
        for column, name in COLUMNS.items()
        if column in layout.split("|") and (value := values[column])
    }
    return kept | plain


def found(job: dict[str, Any], names: Any) -> dict[str, Any]:
    return {name: job[name] for name in names}


@settings(deadline=None, derandomize=True, phases=PHASES)
@given(layout=st.sampled_from(LAYOUTS), values=st.lists(records, min_size=1, max_size=8))
def test_what_was_written_is_read_back_whatever_the_texts_hold(
    read_sacct: Read, layout: str, values: list[dict[str, str]]
) -> None:
    lines = ["|".join(fields(layout, number, row)) for number, row in enumerate(values)]
    read = read_sacct("\n".join([layout, *lines, ""]))
    assert read.rejected == [], lines
    jobs = {int(job["job_id"]) - 1000: job for job in read.jobs}
    assert len(jobs) == len(read.jobs) == len(values)
    for number, row in enumerate(values):
        wanted = expected(layout, row)
        assert found(jobs[number], wanted) == wanted


KINDS = (
    "cut", "head lost", "character lost", "character added", "garbled", "broken in two", "gone",
)  # fmt: skip


def damaged(line: str, kind: str, place: float) -> list[str]:
    """One physical line after something happened to it."""
    at = int(place * len(line))
    return {
        "cut": [line[:at]],
        "head lost": [line[at:]],
        "character lost": [line[:at] + line[at + 1 :]],
        "character added": [f"{line[:at]}|{line[at:]}"],
        "garbled": [line[:at] + "\ufffd\x01" + line[at + 2 :]],
        "broken in two": [line[:at], line[at:]],
        "gone": [],
    }[kind]


@settings(deadline=None, derandomize=True, phases=PHASES)
@given(
    layout=st.sampled_from(LAYOUTS[:4]),
    values=st.lists(records, min_size=3, max_size=6),
    kind=st.sampled_from(KINDS),
    which=st.floats(0, 0.999),
    place=st.floats(0, 0.999),
)
def test_a_damaged_line_costs_its_own_record_only(
    read_sacct: Read,
    layout: str,
    values: list[dict[str, str]],
    kind: str,
    which: float,
    place: float,
) -> None:
    lines = [
        (number, line)
        for number, row in enumerate(values)
        for line in "|".join(fields(layout, number, row)).split("\n")
    ]
    at = int(which * len(lines))
    victim = lines[at][0]
    changed = damaged(lines[at][1], kind, place)
    content = [line for _, line in lines[:at]] + changed + [line for _, line in lines[at + 1 :]]
    read = read_sacct("\n".join([layout, *content, ""]))
    jobs = {job["job_id"]: job for job in read.jobs}
    for number, row in enumerate(values):
        if number != victim:
            wanted = expected(layout, row)
            if number == victim - 1:
                wanted.pop("submit_line", None)  # what has no shape at all goes on with its text
            assert found(jobs[str(1000 + number)], wanted) == wanted


@pytest.mark.parametrize(
    ("lines", "ids", "rejected"),
    [
        (["1|cut", "2|torn", "name|FAILED|T|T|x"], ["2"], [2]),
        (["1|cut", "2|a|b|FAILED|T|T|x"], ["2"], [2]),
        (["1|a|FAILED|T|T|x", "me|FAILED|T|T|x", "3|a|FAILED|T|T|x"], ["1", "3"], [3]),
        (["1|a|FAILED|T|T|x", "2z|a|FAILED|T|T|x", "3|a|FAILED|T|T|x"], ["1", "3"], [3]),
        (["1|a", "2|FAILED|T|T|x", "3|a|FAILED|T|T|x"], ["1", "3"], []),
        (["1|a|FAILED|T|T|", "more", "", "text", "2|a|FAILED|T|T|x"], ["1", "2"], []),
        (["1|a|FAILD|T|T|x", "x2|a|FAILED|T|T|x"], [], [2, 3]),
        (["1|a|b|c|d|e", "f|FAILED|T|T|x", "2|a|FAILED|T|T|x"], ["1", "2"], []),
        (["1|a", "b|c|FAILED|T|T|x"], ["1"], []),
        (["1|\u2028a\x0bb\x85|FAILED|T|T|x"], ["1"], []),
        (["junk", "1|a|FAILED|T|T|x"], ["1"], [2]),
        (["1|a\rb|FAILED|T|T|x"], ["1"], []),
        (["1|a|FAILED|T|T|x", "12"], ["1"], [3]),
    ],
)
def test_torn_and_damaged_lines_are_told_apart(
    read_sacct: Read, lines: list[str], ids: list[str], rejected: list[int]
) -> None:
    at = "2024-03-01T10:00:00"
    text = "\n".join(["JobID|JobName|State|Start|End|SubmitLine", *lines])
    if not ids:
        text += "\n9|a|FAILED|T|T|x"
        ids = ["9"]
    read = read_sacct(text.replace("|T", f"|{at}"))
    assert sorted(job["job_id"] for job in read.jobs) == ids
    assert [line for line, _ in read.rejected] == rejected


@pytest.mark.benchmark
def test_a_large_file_with_many_torn_lines_is_read_in_time(read_sacct: Read) -> None:
    chance = random.Random(0)
    at = "2024-03-01T10:00:00"
    names = ["a|b", "two\nlines", "a\n|\nb", 'x"y']
    lines = [
        f"{job}|{chance.choice(names) if job % 20 == 0 else 'a'}|COMPLETED|{at}|{at}|sbatch x"
        for job in range(100_000)
    ]
    begin = time.process_time()
    read = read_sacct("\n".join(["JobID|JobName|State|Start|End|SubmitLine", *lines, ""]))
    assert len(read.jobs) == len(lines)
    assert time.process_time() - begin < 15


def _only_torn() -> None:
    """Repairs a file that holds nothing to repair."""
    shape = Shape(("account", "jobname", "jobid", "state"), "|")
    torn = [Line(number, f"text {number}") for number in range(1, 5_001)]
    records, rejected = repaired(torn, shape.resolve, begins=shape.begins, ends=shape.ends)
    assert (records, len(rejected)) == ([], len(torn))


def test_a_file_of_nothing_but_torn_lines_is_given_up() -> None:
    _only_torn()


@pytest.mark.benchmark
def test_a_file_of_nothing_but_torn_lines_is_given_up_in_time() -> None:
    begin = time.process_time()
    _only_torn()
    assert time.process_time() - begin < 15


def test_the_scan_knows_every_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfa|b\r\n\nc|d|e\nf\rg|h\n\r\nlast|one")
    found = scan(path, "|", 2)
    assert found.whole.tolist() == [True, False, False, False, False, True]
    assert [line.text for line in found.lines(found.lengths >= 0)] == [
        "a|b", "", "c|d|e", "f\rg|h", "", "last|one",
    ]  # fmt: skip
    found.copy(found.whole, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"a|b\nlast|one\n"
    assert not found.plain


@pytest.mark.parametrize("delimiter", ["|", ";|", "||"])
@given(st.lists(st.sampled_from(["a" * 7, "\u00e9", "\n", "\r", "\r\n", "|", ";|", "||"])))
def test_the_scan_counts_the_same_wherever_its_blocks_end(delimiter: str, parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "CHUNK", 5)
        (path := Path(folder) / "x").write_bytes(content := "".join(parts).encode())
        found = scan(path, delimiter, 2)
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    bare = [line.removesuffix(b"\r") for line in lines]
    assert found.lengths.tolist() == [len(line) for line in bare]
    begins = [len(b"\n".join((*lines[:index], b""))) for index in range(len(lines))]
    assert found.starts.tolist() == begins
    if delimiter != "||":  # of a delimiter that overlaps itself no line is taken as whole
        counts = [line.count(delimiter.encode()) for line in bare]
        fits = [n == 1 and b"\r" not in line for n, line in zip(counts, bare, strict=True)]
        assert found.whole.tolist() == fits


def test_the_shortest_join_wins_and_other_lines_are_rejected_one_by_one() -> None:
    def resolve(text: str) -> list[str] | str:
        return text.split("|") if text.count("|") == 2 else "too few fields"

    torn = [Line(2, "a|b"), Line(3, "c|d"), Line(5, "e"), Line(6, ""), Line(7, "f|g|h")]
    records, rejected = repaired(torn, resolve, begins=lambda text: text == "f|g|h" or None)
    assert records == [(2, ["a", r"b\nc", "d"]), (7, ["f", "g", "h"])]
    assert [(row.line_no, row.reason) for row in rejected] == [(5, "too few fields")]


def test_fields_go_to_the_fewest_and_likeliest_texts() -> None:
    shape = Shape(("jobid", "jobname", "state", "submitline", "workdir"), "|")
    assert shape.resolve("1|a|b|FAILED|x|y|z|/w") == ["1", "a|b", "FAILED", "x|y|z", "/w"]
    assert shape.resolve("1|a|FAILED|x\ny|/w") == ["1", "a", "FAILED", "x\ny", "/w"]
    assert isinstance(shape.resolve("z|a|b|x|/w"), Doubtful)
    assert shape.resolve("1|a|FAILED") == "too few fields"
    assert shape.resolve("1|a|b|c|d|e") == "too many fields"
    assert shape.resolve("1\n|a|FAILED|x|/w") == "fields do not fit their columns"


def test_commas_at_home_in_a_value_are_not_taken_for_delimiters() -> None:
    shape = Shape(("jobid", "state", "alloctres", "nodelist", "submit"), ",")
    text = "1_[1,3],FAILED,cpu=1,gres/gpu=8,n[1,3-4],m7,2024-03-01T10:00:00"
    assert shape.resolve(text) == [
        "1_[1,3]", "FAILED", "cpu=1,gres/gpu=8", "n[1,3-4],m7", "2024-03-01T10:00:00",
    ]  # fmt: skip
