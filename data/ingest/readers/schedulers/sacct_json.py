"""Reader of Slurm's jobs as JSON: `sacct --json`, `squeue --json`, and the answers of slurmrestd.

The shape changes with every version of Slurm's data parser: a number is plain or
`{set, infinite, number}`, a state a word or a list of words, a text may be null. Steps are no
attempts. What the controller says of a job that has not ended (an expected start, the end that its
time limit would set) is no fact and stays out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import accounting_batch, whole, words

if TYPE_CHECKING:
    import duckdb


_BASE_STATES = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
    "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
"""States; the further words beside them are flags."""
_NO_VALUE = 0xFFFF_FFFE
"""From here on a 32-bit number of Slurm says that there is none, or no limit."""


def sniff(head: str) -> bool:
    """Whether JSON holds jobs of Slurm."""
    if head.lstrip()[:1] not in ("{", "["):
        return False
    wrapped = '"jobs"' in head and '"meta"' in head
    of_jobs = any(name in head for name in ('"job_state"', '"allocation_nodes"', '"association"'))
    return wrapped or ('"job_id"' in head and of_jobs)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs.

    Raises
    ------
    SourceError
        Where the file is an error that Slurm answered.
    """
    records = JsonRecords(source, ("jobs",), options.limits)
    batch = accounting_batch(source, records, _flat, options, connection=connection)
    batch.notices += records.notices()
    errors = records.around.get("errors")
    if isinstance(errors, list) and errors:
        told = (
            errors[0].get("description") or errors[0].get("error")
            if isinstance(errors[0], dict)
            else errors[0]
        )
        if batch.rows_read == 0:
            raise SourceError(f"{source.name}: is an error of Slurm: {str(told)[:200]}")
        batch.notices.append(f"Slurm told of an error, jobs may be missing: {str(told)[:200]}")
    return batch


def _flat(record: object) -> dict[str, str]:
    """A job in the words of sacct."""
    if not isinstance(record, dict):
        raise RecordError("no JSON object")
    if "job_id" not in record or not {"state", "job_state"} & record.keys():
        raise RecordError("no job with job_id and state")
    row = _of_controller(record) if "job_state" in record else _of_database(record)
    row |= {
        "jobidraw": _number(record["job_id"]),
        "priority": _number(record.get("priority")),
        "exitcode": _exit_code(record.get("exit_code")),
    }
    texts = {
        "sluid": "sluid", "cluster": "cluster", "account": "account", "partition": "partition",
        "qos": "qos", "jobname": "name", "nodelist": "nodes", "failednode": "failed_node",
        "submitline": "submit_line", "excludednodes": "excluded_nodes",
    }  # fmt: skip
    row |= {column: words(record[name]) for column, name in texts.items() if name in record}
    if "restart_cnt" in record:
        row["restarts"] = _number(record["restart_cnt"])
    return row


def _of_database(record: dict[str, Any]) -> dict[str, str]:
    """What sacct shows in its own way."""
    state, time = _inside(record, "state"), _inside(record, "time")
    array, het = _inside(record, "array"), _inside(record, "het")
    row = _state(state.get("current"), record.get("flags"))
    tres = _inside(record, "tres").get("allocated")
    return row | {
        "jobid": _job_id(
            _number(record["job_id"]),
            (array.get("job_id"), array.get("task_id"), array.get("task")),
            (het.get("job_id"), het.get("job_offset")),
        ),
        "user": words(record.get("user")),
        "reason": words(state.get("reason")),
        "submit": _time(time.get("submission")),
        "eligible": _time(time.get("eligible")),
        "start": _time(time.get("start")),
        "end": _time(time.get("end")),
        "elapsedraw": _number(time.get("elapsed")),
        "timelimitraw": _number(time.get("limit")),
        "nnodes": _number(record.get("allocation_nodes")),
        "ncpus": _tres(tres).get("cpu", ""),
        "alloctres": ",".join(f"{name}={count}" for name, count in _tres(tres).items()),
    }


def _of_controller(record: dict[str, Any]) -> dict[str, str]:
    """What squeue and slurmrestd show of a job that the controller still knows."""
    row = _state(record.get("job_state"), record.get("flags"))
    pending, running = row["state"] == "PENDING", row["state"] in ("RUNNING", "SUSPENDED")
    return row | {
        "jobid": _job_id(
            _number(record["job_id"]),
            tuple(record.get(f"array_{name}") for name in ("job_id", "task_id", "task_string")),
            (record.get("het_job_id"), record.get("het_job_offset")),
        ),
        "user": words(record.get("user_name")),
        "reason": words(record.get("state_reason")),
        "submit": _time(record.get("submit_time")),
        "eligible": _time(record.get("eligible_time")),
        "start": "" if pending else _time(record.get("start_time")),
        "end": "" if pending or running else _time(record.get("end_time")),
        "timelimitraw": _number(record.get("time_limit")),
        "nnodes": _number(record.get("node_count")),
        "ncpus": _number(record.get("cpus")),
        "alloctres": words(record.get("tres_alloc_str")),
    }


def _inside(record: dict[str, Any], name: str) -> dict[str, Any]:
    """An object inside another; an empty one where there is none."""
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RecordError(f"{name} is no object")
    return value


def _number(value: object) -> str:
    """A whole number as text, plain or as `{set, infinite, number}`; nothing where not set."""
    if isinstance(value, dict):
        if not value.get("set") or value.get("infinite"):
            return ""
        value = value.get("number")
    text = whole(value)
    return "" if text and (int(text) < 0 or int(text) >= _NO_VALUE) else text


def _time(value: object) -> str:
    """Seconds since 1970; nothing where there is no time yet."""
    number = _number(value)
    return "" if number == "0" else number


def _state(current: object, flags: object) -> dict[str, str]:
    """The state and what stands beside it; an attempt that is queued again has ended so."""
    named = [current] if isinstance(current, str) else current
    if not isinstance(named, list) or not named or not all(isinstance(n, str) for n in named):
        raise RecordError("no state")
    upper = [name.strip().upper() for name in named]
    base = next((name for name in upper if name in _BASE_STATES), upper[0])
    state = "REQUEUED" if base == "PENDING" and "REQUEUED" in upper else base
    further = [name for name in upper if name != state]
    if isinstance(flags, list):
        further += [str(flag).strip() for flag in flags]
    return {"state": state, "stateraw": ",".join(named), "flags": ",".join(further)}


def _exit_code(value: object) -> str:
    """`code:signal`; nothing where neither is set. Slurm sets no signal where there was none."""
    if not isinstance(value, dict):
        number = _number(value)  # the status that wait() gives
        return f"{int(number) >> 8 & 255}:{int(number) & 127}" if number else ""
    code, signal = _number(value.get("return_code")), ""
    if isinstance(value.get("signal"), dict):
        signal = _number(value["signal"].get("id", value["signal"].get("signal_id")))
    return f"{code or 0}:{signal or 0}" if code or signal else ""


def _tres(listed: object) -> dict[str, str]:
    """Resource -> count, as sacct names them: cpu, mem, gres/gpu:a100."""
    found: dict[str, str] = {}
    if listed is None:
        return found
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise RecordError("tres is no list of objects")
    for item in listed:
        kind, name = words(item.get("type")), words(item.get("name"))
        if kind and (count := _number(item.get("count"))):
            found[f"{kind}/{name}" if name else kind] = count
    return found


def _job_id(plain: str, array: tuple[Any, ...], het: tuple[Any, ...]) -> str:
    """The id as users see it: 4711, 4711_3, 4711_[4-9], 4711+0."""
    array_id, task = _number(array[0]), _number(array[1])
    if array_id not in ("", "0"):
        waiting = words(array[2])
        if task:
            return f"{array_id}_{task}"
        if waiting:
            return f"{array_id}_[{waiting}]"
    het_id, offset = _number(het[0]), _number(het[1])
    return f"{het_id}+{offset}" if het_id not in ("", "0") and offset else plain


READER = Reader(
    "sacct-json",
    "Slurm jobs as JSON",
    export="sacct -a --duplicates -S now-90days --json, or slurmrestd's jobs",
    reads=(
        "`sacct --json` of Slurm 21.08 and later, `squeue --json`, jobs of slurmrestd; a "
        "file that is cut off gives what precedes the cut"
    ),
    script="sacct -a --duplicates -S {start} -E {end} --json > sacct.json",
    example="sacct.json",
    advice=(
        "Says more than the text: excluded nodes and submit lines; a job is about 7 kB, as "
        "text 0.3 kB. `squeue` and slurmrestd know the jobs that the controller still "
        "knows."
    ),
    fills=("jobs",),
    place=1.1,
    any_length=True,
    sniff=sniff,
    read=read,
)
