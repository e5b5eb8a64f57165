"""Reports to strangers name nobody, and name nobody alike."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader

from app.actions import Options, ingest_files
from app.alerts.rule import Episode
from app.ask import of_store
from app.reports import kinds, redaction
from app.reports.redaction import Hidden, Pseudonyms, redacting
from app.show import files
from data.alerts import Alert, Delivery
from data.filters import Selection
from data.queries.targets import People
from data.state import Annotation, State
from data.store import Store
from tests.app.reports.conftest import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.reports.report import Report

PSEUDONYM = re.compile(r"\b(?:user|account|job)-[a-z2-7]{10}\b")
ABOUT = {"fleet": "", "incident": "latest", "node": "n2"}


def _names(**people: set[str]) -> Pseudonyms:
    empty = {"users": set(), "accounts": set(), "jobs": set()}
    found = {kind: frozenset(names) for kind, names in (empty | people).items()}
    return Pseudonyms(Hidden(People(**found), b"key"))


@pytest.fixture(scope="module")
def plain_and_redacted(awkward_store: Path) -> Iterator[Callable[[str], list[Report]]]:
    """A report of each kind with and without names, made once."""
    with closing(Store.open(awkward_store)) as store:
        yield cache(
            lambda kind: [
                kinds.report(store, kind, Selection(), about=ABOUT[kind], redact=redact)
                for redact in (False, True)
            ]
        )


def test_an_id_of_kubernetes_names_nobody_and_is_alike_everywhere(tmp_path: Path) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "llama-ann-0", "namespace": "vision", "uid": "u1",
                     "labels": {"training.kubeflow.org/job-name": "llama-ann"},
                     "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "5"},
        "spec": {"nodeName": "n1", "containers": [
            {"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
        "status": {"phase": "Failed", "startTime": "2026-01-01T00:00:00Z"},
    }  # fmt: skip
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": [pod]}))
    root = tmp_path / "store"
    ingest_files(root, "k8s-pods", [str(tmp_path / "pods.json")], Options())
    with closing(Store.open(root)) as store:
        names = redaction.names(store, redact=True)
        rows = names.frame(store.frame("SELECT job_id, run_id, account, name FROM jobs"))
        pods = names.frame(store.frame("SELECT job_id, namespace, name, pod_name FROM pod_runs"))
        told = names.text("Evicted vision/llama-ann-0 of vision/llama-ann")
    ((job_id, _, account, name),) = rows.to_numpy().tolist()
    assert job_id == f"{account}/{name}"
    assert pods[["job_id", "namespace", "name"]].to_numpy().tolist() == [[job_id, account, name]]
    shown = f"{rows.to_csv()} {pods.to_csv()} {told}"
    assert not {"vision", "llama", "ann-0"} & {*re.findall(r"vision|llama|ann-0", shown)}
    assert told.endswith(f" of {job_id}")


def test_ids_of_slurm_stay_and_a_run_that_came_again_is_told_apart() -> None:
    names = _names()
    assert [names.id(each) for each in ("4711", "4711_3", "4711+0")] == ["4711", "4711_3", "4711+0"]
    assert names.id("vision/llama#2") == f"{names.id('vision/llama')}#2"

    @dataclass(frozen=True)
    class Found:
        job_id: str
        run_id: str | None = None

    assert names.result(Found("vision/llama")) == Found(names.id("vision/llama"))


def _read_back(content: bytes, form: str) -> str:
    """All that a file says: of a PDF texts, links, outline and metadata, of a workbook every part."""
    if form == "xlsx":
        with ZipFile(io.BytesIO(content)) as parts:
            return "\n".join(parts.read(name).decode() for name in parts.namelist())
    if form != "pdf":
        return content.decode()
    reader = PdfReader(io.BytesIO(content))
    links = [str(each.get_object()) for page in reader.pages for each in page.get("/Annots", ())]
    texts = [page.extract_text() for page in reader.pages]
    return "\n".join([*texts, *links, str(reader.outline), str(reader.metadata)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ABOUT)
@pytest.mark.parametrize("form", ["md", "pdf", "html", "json", "xlsx"])
def test_no_name_leaves_the_store(
    awkward: Store,
    plain_and_redacted: Callable[[str], list[Report]],
    kind: str,
    form: str,
) -> None:
    plain, report = plain_and_redacted(kind)
    assert any(name in _read_back(files.render(plain, form), form) for name in NAMES)
    text = _read_back(files.render(report, form), form)
    assert [name for name in NAMES if name in text] == []
    unbroken = "".join(text.split())  # a cell may break a name; short ones arise of other words
    assert [name for name in NAMES if len(name) > 4 and name in unbroken] == []
    assert PSEUDONYM.search(text)
    assert State(awkward.root).redaction_key().hex() not in text


def test_the_account_of_a_filter_is_hidden_too(awkward: Store) -> None:
    report = kinds.report(awkward, "fleet", Selection(account="physics"), redact=True)
    assert re.fullmatch(r"account account-[a-z2-7]{10}", report.filters)


def test_a_name_has_one_pseudonym_wherever_it_stands(awkward: Store) -> None:
    names = redaction.names(awkward, redact=True)
    alice = names.user("alice")
    assert names.text("waits for alice, /home/alice/x, alice_run.log") == (
        f"waits for {alice}, /home/{alice}/x, {alice}_run.log"
    )
    assert redaction.names(awkward, redact=True).user("alice") == alice
    assert names.user("bob_k") != alice
    assert names.account("alice")[-10:] == alice[-10:]


TEXTS = {
    "a part of a word": ("malice and alicent", "malice and alicent"),
    "beside marks": ("(ann): ann's", "({ann}): {ann}'s"),
    "an unknown home": ("/users/zoe/run", "/users/{zoe}/run"),
    "a tilde": ("see ~zoe/x", "see ~{zoe}/x"),
    "a name with marks": ("log train-70b.out", "log {train-70b}.out"),
    "a longer name first": ("train-70b-v2 done", "{train-70b-v2} done"),
    "a name with spaces": ("my run, again", "{my run}, again"),
    "only numbers": ("exit 42", "exit 42"),
    "one letter": ("x = 3", "x = 3"),
    "nothing": ("", ""),
    "another script": ("Job von Zoë läuft", "Job von {Zoë} läuft"),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS)
def test_texts_lose_names_and_nothing_else(case: tuple[str, str]) -> None:
    names = _names(
        users={"ann", "alice", "x", "42", "Zoë"}, jobs={"train-70b", "train-70b-v2", "my run", "42"}
    )
    jobs = ("train-70b", "train-70b-v2", "my run")
    text, expected = case
    wanted = re.sub(
        r"\{(.*?)\}", lambda m: names.job(m[1]) if m[1] in jobs else names.user(m[1]), expected
    )
    assert names.text(text) == wanted


def test_a_user_called_user_does_not_break_pseudonyms() -> None:
    names = _names(users={"user", "job", "ann"})
    assert names.text("/home/ann and user") == f"/home/{names.user('ann')} and {names.user('user')}"


@given(st.text(), st.sampled_from(["ann", "bob_k", "my run"]), st.text())
def test_no_surroundings_let_a_name_through(before: str, name: str, after: str) -> None:
    names = _names(users={"ann", "bob_k"}, jobs={"my run"})
    said = names.text(f"{before} {name} {after}")
    assert not re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", said)


@dataclass(frozen=True)
class _Result:
    rows: pd.DataFrame
    row: dict[str, object]
    titles: dict[str, str]
    said: tuple[Annotation, ...]


def _result(_: Store) -> _Result:
    said = Annotation("1", "attempt:a/1", "ann", "2026-01-01T00:00:00", "note", "ann: mine")
    return _Result(
        pd.DataFrame({"user": ["ann", None], "n_gpus": [8, 16]}),
        {"cluster": "a", "account": "ann", "note": "ask ann"},
        {"user": "The program of ann"},
        (said,),
    )


def test_what_is_asked_by_a_redacting_ask_names_nobody(awkward: Store) -> None:
    names, ask = _names(users={"ann"}), of_store(awkward)
    result = redacting(ask, names)(_result)
    assert result.rows["user"].tolist() == [names.user("ann"), None]
    assert result.row == {
        "cluster": "a", "account": names.account("ann"), "note": f"ask {names.user('ann')}",
    }  # fmt: skip
    assert result.said[0].author == names.user("ann")
    assert result.said[0].value == f"{names.user('ann')}: mine"
    assert result.titles == {"user": "The program of ann"}, "words of analytics name nobody"
    assert redacting(ask, redaction.Names())(_result).row["note"] == "ask ann"


def _alert(sentence: str, owner: str, **named: str) -> Alert:
    return Alert(
        "a1", "action:hang-0123456789ab", ("hang",), "c", "critical", sentence, "my_runs", named,
        owner, *["2026-01-01T00:00:00+00:00"] * 3, resolved_by="ann",
    )  # fmt: skip


def test_an_alert_names_nobody_neither_its_owner_nor_who_resolved_it() -> None:
    names = _names(users={"ann", "10042", "8"}, jobs={"pretrain"})
    shown = names.result(_alert("pretrain of 10042 hangs", "10042", user="10042", run="917"))
    number = names.user("10042")
    assert shown.sentence == f"{names.job('pretrain')} of {number} hangs"
    assert (shown.owner, shown.resolved_by) == (number, names.user("ann"))
    assert shown.named == {"user": number, "run": "917"}
    others = "110042 steps, 10,042.5 s, 1.10042 and run 917"
    assert names.result(_alert(others, "10042", run="917")).sentence == others
    uid = names.result(_alert("8 fails on 1,8 and 8.5", "8"))
    assert uid.sentence == f"{names.user('8')} fails on 1,8 and 8.5"


def test_an_episode_in_a_named_tuple_or_not_names_nobody() -> None:
    names, at = _names(users={"ann"}), datetime(2026, 1, 1, tzinfo=UTC)
    one = Episode("action:hang-0123456789ab", at, at, None, "that of ann", "my_runs", owner="ann")
    (shown,) = names.result((one,))
    assert (shown.sentence, shown.owner) == (f"that of {names.user('ann')}", names.user("ann"))
    assert shown.target == names.target(one.target) != one.target
    assert re.fullmatch(r"action:hang-[0-9a-f]{12}", shown.target)
    assert names.target("incident:i1") == "incident:i1"


def test_what_a_mail_server_says_names_nobody() -> None:
    names = _names(users={"ann", "10042"})
    one = Delivery("d", "a1", "opened", "owners", {"to": "10042@a.example"}, "", outcome="refused")
    said = "550 <bob.x@a.example>: no 10042; ann@a.example"
    shown = names.result(replace(one, said=said)).said
    wanted = [names.user(name) for name in ("bob.x", "10042", "ann")]
    assert shown == "550 <{}@a.example>: no {}; {}@a.example".format(*wanted)
    assert names.result(one).said is None


def test_the_key_is_made_once(tmp_path: Path) -> None:
    key = State(tmp_path).redaction_key()
    assert len(key) == 32
    assert State(tmp_path).redaction_key() == key
