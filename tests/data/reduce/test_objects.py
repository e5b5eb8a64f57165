"""Objects of a storage are reduced as the same files on disk are."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pandas as pd
import pytest
import zstandard

from data.errors import DataError, SourceError
from data.reduce.estimate import estimate
from data.reduce.inputs import LOGS, partitions
from data.reduce.kinds import EVENTS, JOBS, KINDS, METRICS
from data.reduce.manifest import load
from data.reduce.objects import Bytes, is_address
from data.reduce.records import reduce_records
from data.reduce.running import Reduced, Request
from tests.data.reduce import accounts
from tests.data.reduce.events import events
from tests.data.reduce.local_times import LOCAL
from tests.data.reduce.samples import content, same, samples, written
from tests.spark_master import free_port, skip_without_spark
from tests.storages import S3, Folder, Storage, environment, put_all, s3_server

ROOT = Path(__file__).parents[3]
MIDNIGHT = pd.Timestamp("2026-01-06", tz="UTC")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with s3_server() as found:
        yield found


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.service)])
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    """The same tests of a folder with each commit, and of a server of S3 by hand."""
    if request.param == "folder":
        return Folder(tmp_path / "storage", monkeypatch)
    return S3(request.getfixturevalue("port"), monkeypatch)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Samples whose sums are exact in whatever order they are added up."""
    found = samples(hours=3.0, step_s=60)
    found["observed_at"] = found["observed_at"].astype("datetime64[us, UTC]")
    return found.assign(reading=found.reading.round())


def reduced(out: Path, *inputs: str, **stated: Any) -> Reduced:
    return reduce_records(Request(inputs, out, **stated))


def packed(path: Path, pack: Callable[[bytes], bytes], ending: str) -> None:
    path.with_name(path.name + ending).write_bytes(pack(path.read_bytes()))
    path.unlink()


def given(kind: str, folder: Path, frame: pd.DataFrame) -> Path:
    """Records of a kind in all forms that are read."""
    folder.mkdir()
    if kind == JOBS:
        forms = ("0.txt", "1.parquet", "2.csv", "3 ä+%20[1].jsonl", "4.txt")
        for rows, name in zip(accounts.dumps(0, 30, 5), forms, strict=True):
            accounts.written(rows, folder / name)
        packed(folder / "4.txt", gzip.compress, ".gz")
        return folder
    if kind == EVENTS:
        frame = events(busy=0.3)
        said = [f"{at} n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, off" for at in LOCAL]
        (folder / "kern.log").write_text("\n".join([*said, ""]))
        (folder / "again.log").write_text("\n".join([*said, ""]).replace("n1", "n2"))
        packed(folder / "again.log", gzip.compress, ".gz")
    names = ("0.parquet", "1 ä+%20[1].parquet", "2.csv", "3.jsonl", "4.csv", "5.jsonl")
    for k, name in enumerate(names):
        written(frame.iloc[k :: len(names)], folder / name)
    frame.iloc[1 :: len(names)].to_parquet(folder / names[1], row_group_size=50)
    packed(folder / "4.csv", gzip.compress, ".gz")
    packed(folder / "5.jsonl", zstandard.compress, ".zst")
    return folder


def equal(found: Path, wanted: Path) -> None:
    """Each file's rows, exactly."""
    manifest = load(wanted)
    assert manifest is not None
    for kind in KINDS[manifest.kind].files:
        if manifest.files(kind):
            assert content(found, kind) == content(wanted, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_of_objects_is_that_of_the_same_files(
    tmp_path: Path, storage: Storage, frame: pd.DataFrame, kind: str
) -> None:
    folder = given(kind, tmp_path / "in", frame)
    address = put_all(storage, folder, f"whole/{kind}")
    by_disk = reduced(tmp_path / "disk", str(folder), kind=kind)
    by_object = reduced(tmp_path / "object", address, kind=kind)
    assert not by_disk.manifest.refused
    assert not by_object.manifest.refused
    assert by_object.counts == by_disk.counts
    equal(tmp_path / "object", tmp_path / "disk")
    for path, found in by_disk.manifest.inputs.items():
        same = by_object.manifest.inputs[f"{address}/{Path(path).name}"]
        assert replace(same, identity=found.identity) == found
    assert reduced(tmp_path / "object", address, kind=kind).days_done == []
    for name in (".aside-*", "object", "sample*"):
        assert not [*(tmp_path / "object").rglob(name)]


def test_what_comes_late_changes_or_goes_is_treated_as_on_disk(
    tmp_path: Path, storage: Storage, frame: pd.DataFrame
) -> None:
    """What was given is held against the same on disk after each step."""
    disk, address = tmp_path / "in", "s3://bucket/steps"
    disk.mkdir()

    def step(name: str, rows: pd.DataFrame) -> list[str]:
        storage.put(written(rows, disk / name), f"steps/{name}")
        done = reduced(tmp_path / "object", address).days_done
        assert done == reduced(tmp_path / "disk", str(disk)).days_done
        equal(tmp_path / "object", tmp_path / "disk")
        return done

    both = ["2026-01-05", "2026-01-06"]
    assert step("1.parquet", frame.iloc[::3]) == both
    assert step("2.csv", frame[frame.observed_at < MIDNIGHT].iloc[1::3])[0] == both[0]
    assert step("1.parquet", frame[frame.observed_at >= MIDNIGHT].iloc[::3]) == both
    held = content(tmp_path / "object")
    storage.remove("steps/1.parquet")
    late = storage.put(
        written(frame[frame.observed_at >= MIDNIGHT], disk / "3.parquet"), "late.parquet"
    )
    with pytest.raises(SourceError, match=r"2026-01-06 is done .* give s3://bucket/steps/1\.parq"):
        reduced(tmp_path / "object", address, late)
    assert content(tmp_path / "object") == held
    assert reduced(tmp_path / "object", address).days_done == []


def test_an_address_names_an_object_a_folder_or_a_pattern(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "some").write_text("x")
    for key in (
        "day=1/a.csv", "day=1/deep/b.csv", "day=2/a.csv", "day=2/a[1].csv", "day=2/notes.md",
        "day=1/_temporary/c.csv", ".hidden/d.csv", "day=1/.e.csv", "day=10.csv", "day=1/log", "other/notes.md",
    ):  # fmt: skip
        storage.put(tmp_path / "some", f"named/{key}")
    storage.make_folder("named/day=3.csv")

    def named(*names: str, **stated: Any) -> list[str]:
        found = partitions([f"s3://bucket/named{name}" for name in names], tmp_path, **stated)
        assert {one.size for one in found} == {1}
        return [one.path.removeprefix("s3://bucket/named/") for one in found]

    tables = ["day=1/a.csv", "day=1/deep/b.csv", "day=10.csv", "day=2/a.csv", "day=2/a[1].csv"]
    assert named("") == named("/") == named("", "/day=1/a.csv") == tables
    assert named("/day=1") == tables[:2]
    assert named("/day=?/*.csv") == ["day=1/.e.csv", tables[0], *tables[3:]]
    assert named("/day=[2-9]/a.*", "/day=10*") == tables[2:4]
    assert named("/**/b.csv") == tables[1:2]
    assert named("/day=2/a[1].csv") == tables[4:]
    assert named("/day=1/log", forms=LOGS) == ["day=1/log"]
    with pytest.raises(SourceError, match="ends in no known form: give Parquet, CSV"):
        named("/day=1/log")
    with pytest.raises(SourceError, match="the folder holds no Parquet, CSV"):
        named("/other")
    for absent in ("/nothing", "/day=7/*.csv", "/day=3.csv"):
        with pytest.raises(SourceError, match="names no object, folder or pattern"):
            named(absent)


def test_each_thread_reads_an_object_at_a_place_of_its_own(
    tmp_path: Path, storage: Storage
) -> None:
    (tmp_path / "text").write_bytes(bytes(range(200)))
    there = Bytes(storage.put(tmp_path / "text", "text"))
    begun, done = Barrier(2), Barrier(2)

    def elsewhere() -> None:
        there.seek(100)
        begun.wait()
        done.wait()
        read.append(there.read(2))

    read: list[bytes] = []
    other = Thread(target=elsewhere)
    other.start()
    begun.wait()
    there.seek(-3, io.SEEK_END)
    read.append(there.read(9))
    done.wait()
    other.join()
    assert read == [bytes([197, 198, 199]), bytes([100, 101])]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("s3://key:secret@bucket/a.csv", r"^s3://\*\*\*bucket/a.csv: holds a password or options"),
        ("s3://bucket/a.csv?secret_key=secret", r"^s3://bucket/a.csv\*\*\*: holds a password"),
        ("https://host/a.csv?X-Amz-Signature=secret", r"^https://host/a.csv\*\*\*: holds"),
        ("ftp://host/a.csv", "begin with s3://, gs://, abfss://, hdfs:// and a bucket"),
        ("file:///a.csv", "give one, or a path"),
        ("s3:///a.csv", "and a bucket"),
        ("s3:/bucket/a.csv", "and a bucket"),
    ],
)
def test_other_addresses_and_passwords_are_refused(tmp_path: Path, address: str, told: str) -> None:
    with pytest.raises(SourceError, match=told) as refused:
        reduced(tmp_path / "out", address)
    assert "=secret" not in str(refused.value)
    assert "key:" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_reduction_is_written_to_no_address(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at,node,metric,value\n1767650400,n1,x,1\n")
    with pytest.raises(SourceError, match="is an address: the reduction is written to a folder"):
        reduced(Path("s3://bucket/out"), str(tmp_path / "a.csv"))
    assert not is_address("/data/s3:/a.csv")
    assert not is_address("a:b.csv")


def test_absent_and_broken_objects_are_told(
    tmp_path: Path, storage: Storage, frame: pd.DataFrame
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SourceError, match="s3://bucket/nothing: names no object"):
        reduced(out, "s3://bucket/nothing")
    good = written(frame, tmp_path / "good.parquet")
    storage.put(good, "broken/good.parquet")
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:5_000])
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"at,node,metric,value\n" * 9_000)[:-30])
    (tmp_path / "empty.csv").touch()
    for name in ("cut.parquet", "cut.csv.gz", "empty.csv"):
        storage.put(tmp_path / name, f"broken/{name}")
    result = reduced(out, "s3://bucket/broken")
    told = {Path(path).name: why for path, why in result.manifest.refused.items()}
    assert told.keys() == {"cut.parquet", "cut.csv.gz", "empty.csv"}
    assert told["cut.parquet"].startswith("s3://bucket/broken/cut.parquet: is damaged (")
    assert "is damaged" in told["cut.csv.gz"]
    assert "is empty" in told["empty.csv"]
    assert result.counts["rows_kept"] == len(frame)


class Refusing(BaseHTTPRequestHandler):
    """A storage that lets nobody in."""

    def do_HEAD(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD  # noqa: N815 - the library's name

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_credentials_that_a_storage_refuses_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HTTPServer(("127.0.0.1", 0), Refusing) as refusing:
        Thread(target=refusing.serve_forever, daemon=True).start()
        environment(monkeypatch, f"http://127.0.0.1:{refusing.server_port}")
        for address in ("s3://bucket/a.csv", "s3://bucket/*.csv"):
            with pytest.raises(SourceError, match=r"is denied \(.*ACCESS_DENIED.*check the cred"):
                reduced(tmp_path / "out", address)
        refusing.shutdown()


@pytest.mark.slow
def test_a_storage_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, f"http://127.0.0.1:{free_port()}")
    with pytest.raises(
        DataError, match=r"a\.csv: its storage does not answer \(.*AWS_ENDPOINT_URL"
    ):
        reduced(tmp_path / "out", "s3://bucket/a.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "part"),
    [("a.parquet", 0.5), ("a.parquet", 1.5), ("a.csv", 0.5), ("a.csv.gz", 0.5), ("a.jsonl", 0.5),
     ("a.log", 0.5)],
)  # fmt: skip
def test_a_line_that_breaks_ends_the_run_and_the_next_one_goes_on(
    tmp_path: Path, storage: Storage, frame: pd.DataFrame, name: str, part: float
) -> None:
    """Parquet is read again to be reduced, once it is counted."""
    kind = EVENTS if name == "a.log" else METRICS
    if kind == EVENTS:
        said = [
            f"Jan  5 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, {k}" for k in range(999)
        ]
        (tmp_path / name).write_text("\n".join(said))
    elif name.endswith(".gz"):
        packed(written(frame, tmp_path / "a.csv"), gzip.compress, ".gz")
    else:
        written(frame, tmp_path / name)
    address, out = storage.put(tmp_path / name, f"line/{name}"), tmp_path / "out"
    most = round((tmp_path / name).stat().st_size * part)
    with storage.line(most) as breaking:
        with pytest.raises(DataError, match=r"its storage does not answer .* run it again") as told:
            reduced(out, address, kind=kind)
        assert not isinstance(told.value, SourceError)
        assert "\n" not in str(told.value)
        assert breaking.n_bytes > most
    manifest = load(out)
    assert manifest is not None
    assert (manifest.inputs, manifest.refused, manifest.partitions) == ({}, {}, {})
    assert not [*out.rglob("*.parquet")]
    assert reduced(out, address, kind=kind).days_done
    assert not [*out.glob(".aside-*")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_reads_the_begin_of_a_text_and_the_footers_of_parquet(
    tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The sample is of one object, the largest."""
    lines = {
        METRICS: ("at,node,metric,value", "1767650400,n1,x,%d"),
        EVENTS: ("node,at,xid,message", "n1,1767650400,79,of process %d"),
        JOBS: ("JobID,State,Submit", "%d,COMPLETED,2026-01-05T08:00:00"),
    }[kind]
    frame = pd.DataFrame({"at": range(1_767_650_400, 1_768_650_400), "node": "n1", "xid": 79})
    frame = frame.assign(metric="x", value=frame["at"] * 7, JobID=frame["at"], State="COMPLETED")
    frame.iloc[:200_000].to_parquet(tmp_path / "a.parquet", row_group_size=10_000)
    text = "\n".join([lines[0], *(lines[1] % k for k in range(700_000))])
    (tmp_path / "a.csv").write_text(text)
    inputs = [storage.put(tmp_path / name, f"dry/{kind}/{name}") for name in ("a.parquet", "a.csv")]
    monkeypatch.setattr("data.reduce.estimate.SAMPLE_ROWS", 1_000)
    with storage.line() as counting:
        told = estimate(Request(tuple(inputs), tmp_path / "out", kind))
        assert counting.n_bytes < len(text) / 1.5
    assert (told["files"], told["sample_rows"]) == (2, 1_000)
    assert told["rows_estimated"] == pytest.approx(900_000, rel=0.1)
    assert not (tmp_path / "out").exists()


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_without_a_connector_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame
) -> None:
    skip_without_spark()
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    storage = Folder(tmp_path / "storage", monkeypatch)
    address = storage.put(written(frame, tmp_path / "a.parquet"), "a.parquet")
    with pytest.raises(
        DataError, match=r"^Spark has no connector of s3a://: add .* DuckDB needs none"
    ):
        reduced(tmp_path / "out", address, engine="spark")
    manifest = load(tmp_path / "out")
    assert manifest is not None
    assert manifest.inputs == {}


VIEW = "fs.s3a.impl=org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
"""Gives Hadoop's view of a folder the name of the connector of S3, which no package of Python has."""


@pytest.mark.service
@pytest.mark.parametrize("kind", KINDS)
def test_spark_takes_objects_by_the_addresses_that_duckdb_takes(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, kind: str
) -> None:
    """What its connector does is not tried here: the same files lie on the server and in a folder."""
    skip_without_spark()
    folder, storage = given(kind, tmp_path / "in", frame), S3(port, monkeypatch)
    for path in folder.glob("*[[]1[]]*"):  # which Spark takes for a pattern, on disk too
        path.rename(path.with_name(path.name.replace("[1]", "")))
    for path in folder.glob("*.zst"):  # which Spark reads where Hadoop's own library lies beside it
        path.unlink()
    address = put_all(storage, folder, f"spark-{kind}")
    by_duckdb = reduced(tmp_path / "duckdb", address, kind=kind)
    settings = (VIEW, f"fs.viewfs.mounttable.bucket.link./spark-{kind}=file://{folder}")
    told = " ".join(f"--conf spark.hadoop.{each}" for each in settings)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{told} pyspark-shell")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    out = tmp_path / "spark"
    command = ("reduce", kind, address, "--out", out, "--engine", "spark", "--master", "local[2]")
    subprocess.run([sys.executable, "-m", "app.cli", *command], check=True, cwd=ROOT)
    manifest = load(out)
    assert manifest is not None
    assert manifest.inputs == by_duckdb.manifest.inputs
    for one in KINDS[kind].files:
        if by_duckdb.manifest.files(one):
            same(content(out, one), content(tmp_path / "duckdb", one))
