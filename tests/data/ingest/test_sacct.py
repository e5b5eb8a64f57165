"""The reader of Slurm accounting, trap by trap."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import SourceError
from data.ingest.readers.schedulers.sacct import sniff

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., Any]

HEADER = "JobID|JobName|State|Submit|Start|End|Elapsed|NNodes|NodeList"
T = "2024-03-01T10:00:00"
AT = datetime(2024, 3, 1, 10, tzinfo=UTC)


def record(job_id: str = "1", name: str = "a", state: str = "COMPLETED") -> str:
    return f"{job_id}|{name}|{state}|{T}|{T}|2024-03-01T11:00:00|01:00:00|2|n[1-2]"


def text(*records: str, header: str = HEADER, end: str = "\n") -> str:
    return end.join([header, *records, ""])


def of(*columns: tuple[str, str]) -> str:
    """A text with one record: JobID, State and these columns."""
    names, values = zip(("JobID", "1"), ("State", "COMPLETED"), *columns, strict=True)
    return f"{'|'.join(names)}\n{'|'.join(values)}\n"


def test_a_record_becomes_an_attempt(read_sacct: Read) -> None:
    job = read_sacct(text(record()), cluster="c", timezone="UTC").only
    assert {key: job[key] for key in ("cluster", "job_id", "name", "state", "node_list")} == {
        "cluster": "c", "job_id": "1", "name": "a", "state": "COMPLETED", "node_list": "n[1-2]",
    }  # fmt: skip
    assert (job["submit_at"], job["start_at"]) == (AT, AT)
    assert (job["end_at"], job["elapsed_s"], job["n_nodes"]) == (AT + timedelta(hours=1), 3600, 2)


@pytest.fixture(scope="module")
def plain(read_sacct: Read) -> list[dict[str, Any]]:
    """The jobs of one record in the form in which sacct writes it."""
    return read_sacct(text(record()), timezone="UTC").jobs


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (text(record(), end="\r\n"), {}),
        (text(record()).replace("2\n", "2\r\n"), {}),
        ("\ufeff" + text(record()), {}),
        ("\n\n" + text("", record(), ""), {}),
        (text(record()).removesuffix("\n"), {}),
        (text(f"{record()}|", header=f"{HEADER}|"), {}),
        (text(record(), header=HEADER.upper()), {}),
        (text(record()), {"columns": tuple(HEADER.split("|"))}),
        (f"{record()}\n", {"columns": tuple(HEADER.lower().split("|"))}),
        (f"\ufeff{record()}\n", {"columns": tuple(HEADER.split("|"))}),
        (f"{record()}|\n", {"columns": tuple(HEADER.split("|"))}),
        (f"{record()}\n", {"columns": tuple(HEADER.replace("Name", "Name%40").split("|"))}),
        (text(record()).replace("|", "|#"), {"delimiter": "|#"}),
        (text(record()).replace("|", "\t"), {"delimiter": "\t"}),
        (text(record()).replace("|", "\t"), {"delimiter": r"\t"}),
        (text(record()).replace("|", "^"), {"delimiter": "^"}),
        (text(record()).replace("|", ","), {"delimiter": ","}),
        (text(record()).replace("|", "||"), {"delimiter": "||"}),
        (text(record()).replace("|", "<-::->"), {"delimiter": "<-::->"}),
        (text(f"{record()}|x|y", header=f"{HEADER}|State|A b"), {}),
    ],
    ids=[
        "CRLF", "CRLF and LF", "BOM", "blank lines", "no line end", "sacct -p", "upper case",
        "header and --columns", "--columns", "BOM without header", "-p without header", "width",
        "|#", "tab", "backslash t", "^", "comma", "overlapping delimiter", "long delimiter",
        "a column twice",
    ],
)  # fmt: skip
def test_the_form_of_the_file_does_not_matter(
    read_sacct: Read, plain: list[dict[str, Any]], content: str, options: dict[str, Any]
) -> None:
    found = read_sacct(content, timezone="UTC", **options)
    assert found.jobs == plain
    assert (found.rejected, found.batch.skipped_by_reason) == ([], {})


def test_columns_are_found_by_name_in_any_order(read_sacct: Read) -> None:
    names, values = HEADER.split("|"), record().split("|")
    turned = text("|".join(values[::-1]), header="|".join(names[::-1]))
    assert read_sacct(turned).jobs == read_sacct(text(record())).jobs


def test_a_header_that_contradicts_the_columns_wins_and_is_reported(read_sacct: Read) -> None:
    found = read_sacct(text(record()), columns=("jobid", "state"), timezone="UTC")
    assert found.only["name"] == "a"
    assert found.batch.notices[0] == "its header was used, not --columns, which names other fields"
    assert all(text.startswith("no column ") for text in found.batch.notices[1:])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("JobID|JobName\n1|a\n", r"column State is missing \(found jobid, jobname\)"),
        ("State|JobName\nFAILED|a\n", r"column JobID is missing \(found state, jobname\)"),
        (text(record()).replace("|", ";"), r"no header with JobID .*: pass --delimiter ';'"),
        ("JobID      State\n-----  -----\n", r"no header .*: give the output of sacct -P"),
        (f"{record()}\n", r"has no header with JobID between '\|': pass --columns"),
        ("JobID|State\r1|FAILED\r", r"has no header with JobID"),
        ('{"jobs": []}\n', r"has no header with JobID"),
        (
            text(record(), "JobID|State|JobName|Submit|Start|End|Elapsed|NNodes|NodeList"),
            r"line 3 is a header with other columns than the first: give the outputs as separate",
        ),
        (text(record(), "JobID|State|End"), r"line 3 is a header with other columns"),
    ],
)
def test_a_file_of_another_shape_is_refused_in_one_line(
    read_sacct: Read, content: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message) as refused:
        read_sacct(content)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("delimiter", ["", "\n", "|\r"])
def test_a_delimiter_that_cannot_divide_is_refused(read_sacct: Read, delimiter: str) -> None:
    with pytest.raises(SourceError, match=r"--delimiter .* cannot divide fields"):
        read_sacct(text(record()), delimiter=delimiter)


@pytest.mark.parametrize("content", [f"{HEADER}\n", HEADER, f"{HEADER}\n\n\r\n"])
def test_a_header_alone_holds_no_record(read_sacct: Read, content: str) -> None:
    found = read_sacct(content)
    assert (found.batch.rows_read, found.jobs) == (0, [])


def test_steps_are_skipped_whatever_the_job(read_sacct: Read) -> None:
    steps = ["1.batch", "1.extern", "1.0", "2_3.batch", "2_3.0", "4+0.extern", "4+1.0", "5.0+1"]
    found = read_sacct(text(record(), *(record(step) for step in steps)))
    assert found.batch.skipped_by_reason == {"job_step": len(steps)}
    assert [job["job_id"] for job in found.jobs] == ["1"]


def test_a_broken_step_is_no_rejected_job(read_sacct: Read) -> None:
    found = read_sacct(text(record(), record("1.0").replace(T, "2024-13-01T00:00:00")))
    assert (found.batch.skipped_by_reason, found.rejected) == ({"job_step": 1}, [])


def test_a_header_in_the_middle_is_skipped(read_sacct: Read) -> None:
    found = read_sacct(text(record("1"), HEADER, record("2"), f"\ufeff{HEADER}", record("3")))
    assert [job["job_id"] for job in found.jobs] == ["1", "2", "3"]
    assert (found.batch.skipped_by_reason, found.rejected) == ({"header": 2}, [])


@pytest.mark.parametrize("before", [(), (HEADER,)])
def test_a_header_that_differs_in_columns_without_checks_is_refused(
    read_sacct: Read, before: tuple[str, ...]
) -> None:
    other = HEADER.replace("JobName", "User")
    with pytest.raises(SourceError, match=rf"line {len(before) + 3} is a header with other col"):
        read_sacct(text(record("1"), *before, other, record("2")))


@pytest.mark.parametrize(
    ("job_id", "array_job_id", "array_task_id", "het_offset"),
    [
        ("123_4", "123", 4, None),
        ("123_[1-5%2]", "123", None, None),
        ("123_[1,3-9]", "123", None, None),
        ("123+0", None, None, 0),
        ("123+12", None, None, 12),
        ("123", None, None, None),
    ],
)
def test_array_tasks_and_components_keep_their_ids(
    read_sacct: Read, job_id: str, array_job_id: str | None, array_task_id: Any, het_offset: Any
) -> None:
    job = read_sacct(text(record(job_id))).only
    assert (job["job_id"], job["array_job_id"]) == (job_id, array_job_id)
    assert (job["array_task_id"], job["het_offset"]) == (array_task_id, het_offset)


@pytest.mark.parametrize(
    ("raw", "state"),
    [("CANCELLED by 1000", "CANCELLED"), ("CANCELLED+", "CANCELLED"), ("NODE_FAIL", "NODE_FAIL")],
)
def test_the_state_is_slurms_base_spelling(read_sacct: Read, raw: str, state: str) -> None:
    job = read_sacct(text(record(state=raw))).only
    assert (job["state"], job["state_raw"]) == (state, raw)


@pytest.mark.parametrize("end", ["Unknown", "None", "", "N/A"])
def test_a_time_that_is_none_is_null(read_sacct: Read, end: str) -> None:
    assert read_sacct(of(("Submit", T), ("End", end))).only["end_at"] is None


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (T, AT - timedelta(hours=1)),
        (f"{T}.500", AT - timedelta(hours=1) + timedelta(milliseconds=500)),
        (f"{T}Z", AT),
        (f"{T}+0200", AT - timedelta(hours=2)),
        (f"{T}-05:30", AT + timedelta(hours=5, minutes=30)),
        (f"{T}+01", AT - timedelta(hours=1)),
        ("1709287200", AT),
    ],
)
def test_times_are_local_unless_they_say_otherwise(
    read_sacct: Read, written: str, at: datetime
) -> None:
    found = read_sacct(of(("Submit", written)), timezone="Europe/Berlin")
    assert found.only["submit_at"] == at


def test_each_cluster_has_its_zone(read_sacct: Read) -> None:
    content = f"JobID|State|Cluster|Submit\n1|FAILED|a|{T}\n2|FAILED|b|{T}\n3|FAILED||{T}\n"
    found = read_sacct(content, timezones={"a": "Asia/Tokyo", "c": "UTC"}, default_cluster="c")
    assert {job["cluster"]: job["submit_at"] for job in found.jobs} == {
        "a": AT - timedelta(hours=9),
        "b": AT,
        "c": AT,
    }
    assert found.batch.notices[0] == "times without a zone, read as UTC (pass --timezone)"
    assert all(text.startswith("no column ") for text in found.batch.notices[1:])


def test_an_export_tells_which_columns_it_lacks_and_what_is_unknown_then(read_sacct: Read) -> None:
    whole = "JobID|User|Account|Partition|State|ExitCode|Reason|Submit|Start|End|SubmitLine"
    whole += "|AllocNodes|AllocTRES|NodeList"
    values = f"1|u|a|p|FAILED|1:0|None|{T}|{T}|{T}|1|gres/gpu=8|n1|sbatch x"

    def notices(*without: str) -> list[str]:
        kept = [
            (name, value)
            for name, value in zip(whole.split("|"), values.split("|"), strict=True)
            if name not in without
        ]
        names, fields = zip(*kept, strict=True)
        content = f"{'|'.join(names)}\n{'|'.join(fields)}\n"
        return [str(text) for text in read_sacct(content, timezone="UTC").batch.notices]

    assert notices() == []
    (told,) = notices("AllocTRES")
    assert told.startswith("no column AllocTRES: the GPUs of jobs stay unknown: no GPU-hours, ETTR")
    names = [text.split()[2] for text in notices("NodeList", "Reason", "AllocNodes")]
    assert names == ["NNodes:", "NodeList:", "Reason:"]


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "utc"),
    [
        ("01:30", "02:30", "01:00:00", ("23:30", "00:30")),
        ("01:30", "02:30", "02:00:00", ("23:30", "01:30")),
        ("02:30", "03:30", "02:00:00", ("00:30", "02:30")),
        ("02:30", "03:30", "01:00:00", ("01:30", "02:30")),
        ("02:10", "02:50", "01:40:00", ("00:10", "01:50")),
        ("02:10", "02:50", "00:40:00", ("00:10", "00:50")),
        ("02:50", "02:10", "00:20:00", ("00:50", "01:10")),
        ("10:00", "12:00", "03:00:00", ("09:00", "11:00")),
    ],
)
def test_the_hour_that_comes_twice_is_told_by_the_elapsed_time(
    read_sacct: Read, start: str, end: str, elapsed: str, utc: tuple[str, str]
) -> None:
    day = "2024-10-27T"
    content = of(("Start", f"{day}{start}:00"), ("End", f"{day}{end}:00"), ("Elapsed", elapsed))
    job = read_sacct(content, timezone="Europe/Berlin").only
    assert (f"{job['start_at']:%H:%M}", f"{job['end_at']:%H:%M}") == utc


VALUES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "Elapsed",
        "elapsed_s",
        {
            "1-02:03:04": 93784,
            "02:03:04": 7384,
            "30:00:00": 108000,
            "100:00:00": 360000,
            "03:04": 184,
            "03:04.512": 184,
            "": None,
        },
    ),
    ("ElapsedRaw", "elapsed_s", {"93784": 93784}),
    (
        "Timelimit",
        "timelimit_s",
        {"125-00:00:00": 10800000, "Partition_Limit": None, "UNLIMITED": None},
    ),
    (
        "TimelimitRaw",
        "timelimit_s",
        {"90": 5400, "9223372036854775807": None, "Partition_Limit": None},
    ),
    ("NNodes", "n_nodes", {"1K": 1024, "1.50K": 1536}),
    ("NCPUS", "n_cpus", {"2M": 2097152, "99999999999999": None}),
    ("Restarts", "restarts", {"3": 3}),
    ("ExitCode", "exit_signal", {"137:9": 9}),
    ("ExitCode", "exit_code", {"": None}),
    ("NodeList", "node_list", {"None assigned": None}),
    ("FailedNode", "failed_node", {"n7": "n7", "None": None}),
    (
        "SubmitLine",
        "excluded_nodes",
        {"sbatch --exclude=n[1-2] x.sh": "n[1-2]", "srun -x n3 hostname": "n3"},
    ),
    ("SLUID", "attempt_key", {"s1A2B3": "s1A2B3"}),
    (
        "AllocTRES",
        "n_gpus",
        {
            "cpu=4,gres/gpu:a100=8": 8,
            "gres/gpu:a100=4,gres/gpu:v100=2": 6,
            "billing=9,gres/gpu=8,gres/gpu:a100=8": 8,
            "gres/gpu:a100=8,gres/gpu=8": 8,
            "cpu=4,gres/gpu=0": 0,
            "cpu=4,gres/gpumem=80G,gres/gpuutil=0": 0,
            "cpu=4,mem=1G": 0,
            "": None,
        },
    ),
]


@pytest.mark.parametrize(("column", "name", "values"), VALUES)
def test_values_are_read_as_slurm_writes_them(
    read_sacct: Read, column: str, name: str, values: dict[str, Any]
) -> None:
    lines = [f"{number}|COMPLETED|{written}" for number, written in enumerate(values)]
    found = read_sacct(text(*lines, header=f"JobID|State|{column}"))
    assert {written: job[name] for written, job in zip(values, found.jobs, strict=True)} == values


def test_rejected_records_carry_their_line_and_reason(read_sacct: Read) -> None:
    found = read_sacct(
        text(
            record("1"),
            record("2", name="two\nlines\nmore"),  # lines 3 to 5
            record("3").replace(T, "2024-02-30T10:00:00"),
            record("4", name="torn\nand wrong").replace(T, "2024-13-01T10:00:00"),  # 7 and 8
            "",
            record("5", state="FINISHED"),
            record("x6"),
            record("7").replace("|2|", "|two|"),
            record("8").rsplit("|", 3)[0],
            record("9"),
            record("10").replace("T11:00:00", "T11:60:00")[:-3],
        ).removesuffix("\n")
    )
    assert {job["job_id"] for job in found.jobs} == {"1", "2", "9"}
    assert found.rejected == [
        (6, "submit is no time"),
        (7, "submit is no time"),
        (10, "State is no Slurm state"),
        (11, "JobID is no job id"),
        (12, "nnodes is no number"),
        (13, "too few fields"),
        (15, "end is no time"),
    ]
    assert found.batch.rejected[1].raw.startswith(r"4|torn\nand wrong|COMPLETED|2024-13-01")


def test_a_truncated_last_line_is_rejected(read_sacct: Read) -> None:
    for header in (HEADER, f"{HEADER}|SubmitLine"):
        lines = [record("1"), record("2")]
        if "SubmitLine" in header:
            lines = [f"{line}|sbatch x" for line in lines]
        for cut in (1, 5, 20, 40):
            content = text(*lines, "3456" + lines[1][1:], header=header)
            found = read_sacct(content[: content.rindex("\n3456") + 1 + cut])
            assert [job["job_id"] for job in found.jobs] == ["1", "2"], (header, cut)
            assert found.rejected == [(4, "too few fields")], (header, cut)


@pytest.mark.slow
def test_order_and_lines_hold_over_many_records(read_sacct: Read) -> None:
    n = 30_000
    lines = [record(str(job)) for job in range(n)]
    wrong = {17: "FAILD", 4_000: "x", 11_111: "done", 29_999: "RUNING"}
    torn = {5: "a|b", 10_000: "a\nb", 20_000: "a\n\nb|c"}
    for job in range(n):
        lines[job] = record(str(job), torn.get(job, "a"), wrong.get(job, "COMPLETED"))
    found = read_sacct(text(*lines))
    content = text(*lines).split("\n")
    assert len(found.jobs) == n - len(wrong)
    assert [content[line - 1].split("|")[0] for line, _ in found.rejected] == [
        str(job) for job in wrong
    ]


def test_the_same_attempt_has_one_key_in_every_form(read_sacct: Read) -> None:
    content = f"JobID|State|Submit|Start\n1|RUNNING|{T}|{T}\n"
    keys = {
        read_sacct(content, cluster="c", timezone="UTC").only["attempt_key"],
        read_sacct(content.replace(T, f"{T}Z"), cluster="c").only["attempt_key"],
        read_sacct(content.replace(T, "1709287200"), cluster="c").only["attempt_key"],
    }
    assert len(keys) == 1
    other = content.replace("Submit", "Eligible")
    assert read_sacct(other, cluster="c").only["attempt_key"] not in keys


def test_bytes_that_are_not_utf8_are_kept_as_replacement_characters(read_sacct: Read) -> None:
    found = read_sacct(text(record(name="caf\xe9")).encode("latin-1"))
    assert found.only["name"] == "caf\ufffd"


def test_a_file_is_recognised_by_its_header() -> None:
    assert sniff(text(record()))
    assert sniff("\n" + text(record()).replace("|", "|#").lower())
    assert not sniff(record())
    assert not sniff("JobID        State\n")
    assert not sniff('{"JobID": 1}\n')
    assert not sniff("step,timestamp,loss,JobID\n")
    assert sniff("JobIDRaw|NNodes|Elapsed\n")


@pytest.mark.parametrize("name", ["one-multiline", "multiple-multiline", "fake-line-break"])
def test_the_multi_line_fixtures_of_gcm_give_the_records_of_their_expected_files(
    read_sacct: Read, shared_data: Path, name: str
) -> None:
    folder = shared_data / "slurm/gcm"
    found, expected = (
        read_sacct((folder / f"sample-sacct-{name}{suffix}.txt").read_bytes(), delimiter="|#")
        for suffix in ("", "-expected")
    )
    assert sorted(map(str, found.jobs)) == sorted(map(str, expected.jobs))
    assert (found.rejected, found.batch.rows_read) == ([], expected.batch.rows_read)
    assert len(found.jobs) > 0


@pytest.mark.parametrize(
    ("name", "options", "read_rows", "jobs", "rejected"),
    [
        ("output-midnight-edge-case-small", {}, 11, 3, 0),
        ("output-midnight-edge-case", {}, 1186, 306, 0),
        ("output-with-invalid-lines", {}, 1, 0, 1),
        ("output-invalid-utf8", {}, 11, 2, 0),
        ("output", {}, 68, 0, 0),
        ("running-output", {"delimiter": "|#"}, 10, 0, 0),
    ],
)
def test_the_odd_files_of_gcm_are_read(
    read_sacct: Read,
    shared_data: Path,
    name: str,
    options: dict[str, Any],
    read_rows: int,
    jobs: int,
    rejected: int,
) -> None:
    content = (shared_data / f"slurm/gcm/sample-sacct-{name}.txt").read_bytes()
    found = read_sacct(content, **options)
    assert (found.batch.rows_read, len(found.jobs)) == (read_rows, jobs)
    assert len(found.rejected) == rejected
    if name.endswith("small"):
        assert found.batch.skipped_by_reason == {"job_step": 8}
        assert all(job["submit_at"] is None for job in found.jobs)


def test_the_states_of_xdmod_equal_a_plain_count(
    read_sacct: Read, shared_data: Path, xdmod_columns: tuple[str, ...]
) -> None:
    content = (shared_data / "slurm/xdmod/pozidriv.log").read_bytes()
    found = read_sacct(content, columns=xdmod_columns, timezone="America/New_York")
    rows = [line.split("|") for line in content.decode().splitlines()]
    jobs = [row for row in rows if "." not in row[0]]
    assert found.batch.rows_read == len(rows)
    assert len(found.jobs) == len(jobs)
    at = xdmod_columns.index("state")
    plain = Counter(row[at].split(" ")[0] for row in jobs)
    assert Counter(job["state"] for job in found.jobs) == plain


@pytest.mark.parametrize(
    ("tres", "n_gpus"),
    [
        ("", None),
        ("billing=8,cpu=8,node=1", 0),
        ("cpu=8,gres/gpu=16", 16),
        ("gres/gpu=8,gres/gpu:a100=8,node=1", 8),
        ("gres/gpu:a100=8,gres/gpu=8", 8),
        ("gres/gpu:a100=4,gres/gpu:h100=3", 7),
        ("gres/gpu:a100=4,gres/gpumem=80G,gres/gpuutil=3", 4),
        ("gres/gpu=0", 0),
        ("gres/gpu=99999999999", 0),
        ("gres/\u00e9=1,gres/gpu=2", 2),
    ],
)
def test_gpus_are_the_untyped_count_else_the_sum_of_typed_ones(
    read_sacct: Read, tres: str, n_gpus: int | None
) -> None:
    assert read_sacct(of(("AllocTRES", tres))).only["n_gpus"] == n_gpus


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("CANCELLED by 1000+", "CANCELLED"),
        ("COMPLETED+", "COMPLETED"),
        ("EXPEDITING", "EXPEDITING"),
    ],
)
def test_the_state_loses_its_author_and_its_sign_of_a_cut(
    read_sacct: Read, written: str, state: str
) -> None:
    job = read_sacct(text(record(state=written))).only
    assert (job["state"], job["state_raw"]) == (state, written)
