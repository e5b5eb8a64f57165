"""faultline report: one page, the files it wrote, a hash of what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.reports import kinds

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_module_that_arranges_a_report_is_found_as_a_kind(
    faultline: Callable[..., Any],
) -> None:
    modules = Path(kinds.__file__).parent.glob("*.py")
    arrange = {path.stem for path in modules if "\ndef report(ask" in path.read_text("utf-8")}
    assert arrange == set(kinds.kinds())
    said = faultline("report", "--help").out
    assert f"--kind {{{','.join(sorted(arrange))}}}" in said


@pytest.mark.slow
def test_it_names_its_files_and_hashes_its_content(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    said = faultline("report", "--store", demo_store, "--out", tmp_path / "new" / "folder")
    assert said.code == 0
    ((path),) = said.json["files"]
    assert Path(path).parent == tmp_path / "new" / "folder"
    page = Path(path).read_text(encoding="utf-8")
    assert "synthetic" in page.lower()
    assert len(said.json["content_sha256"]) == 64
    again = faultline("report", "--store", demo_store, "--out", tmp_path, "--as", "json")
    assert again.json["content_sha256"] == said.json["content_sha256"]


@pytest.mark.slow
def test_it_counts_jobs_of_all_sizes_unless_told_otherwise(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    def page(*options: object) -> str:
        command = ("report", "--store", demo_store, "--out", tmp_path, "--as", "md")
        said = faultline(*command, *options)
        return Path(said.json["files"][0]).read_text(encoding="utf-8")

    failures = faultline("mttf", "--store", demo_store, "--min-gpus", 0).json["failures"]
    assert f", n = {failures})" in page()
    assert "jobs of 129 GPUs and more" in page("--min-gpus", 129)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "table"])
def test_its_answer_has_other_forms(
    faultline: Callable[..., Any], empty_store: Path, tmp_path: Path, form: str
) -> None:
    said = faultline("report", "--store", empty_store, "--out", tmp_path, "--format", form)
    assert said.code == 0
    assert "faultline-all-time-fleet.html" in said.out
    assert "content_sha256" in said.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["incident", "fleet", "node", "monday"])
def test_every_kind_has_every_form(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path, kind: str
) -> None:
    listed = faultline("failures", "--list", "--store", demo_store).json
    node = next(row["node"] for row in listed if row["node"])
    about = {"incident": ("--incident", "latest"), "node": ("--node", node)}
    forms = "html,pdf,xlsx,md,slack,json"
    said = faultline(
        "report", "--store", demo_store, "--out", tmp_path, "--as", forms,
        *about.get(kind, ("--kind", kind)),
    )  # fmt: skip
    assert said.code == 0, said.err
    names = [Path(path).name for path in said.json["files"]]
    stem = names[0].removesuffix(".html")
    endings = ("html", "pdf", "xlsx", "md", "slack.json", "json")
    assert names == [f"{stem}.{ending}" for ending in endings]
    assert stem.startswith("faultline-demo-synthetic-")
    document = json.loads(Path(said.json["files"][-1]).read_text(encoding="utf-8"))
    assert document["kind"] == kind
    assert document["content_sha256"] == said.json["content_sha256"]
    assert not list(tmp_path.glob("*.part"))


def test_the_json_holds_the_numbers_of_the_other_commands(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    said = faultline("report", "--store", demo_store, "--out", tmp_path, "--as", "json")
    report = json.loads(Path(said.json["files"][0]).read_text(encoding="utf-8"))
    mttf = faultline("mttf", "--store", demo_store, "--min-gpus", 0).json
    exact = {headline["label"]: headline["exact"] for headline in report["headlines"]}
    assert exact["Failures per 1,000 node-days"] == mttf["rate_per_1000_node_days"]
    failures = faultline("failures", "--store", demo_store).json
    tables = {table["key"]: table for part in report["sections"] for table in part["tables"]}
    assert [row["attempts"] for row in tables["causes"]["rows"]] == [
        cause["n_attempts"] for cause in failures["by_cause"]
    ]


@pytest.mark.slow
def test_last_week_is_the_last_whole_one(
    faultline: Callable[..., Any], sacct_store: Path, tmp_path: Path
) -> None:
    store = shutil.copytree(sacct_store, tmp_path / "store")  # a report builds the ledger
    said = faultline(
        "report", "--store", store, "--out", tmp_path, "--as", "json", "--last", "week"
    )
    report = json.loads(Path(said.json["files"][0]).read_text(encoding="utf-8"))
    assert report["period"] == "Week 1, 29 December 2025 to 4 January 2026 (UTC)"
    said = faultline(
        "report", "--store", store, "--out", tmp_path, "--as", "json", "--last", "month"
    )
    report = json.loads(Path(said.json["files"][0]).read_text(encoding="utf-8"))
    assert report["period"] == "December 2025 (UTC)"
    assert Path(said.json["files"][0]).name == "faultline-c-2025-12-fleet.json"


@pytest.mark.slow
def test_one_form_can_be_printed_for_a_pipe(
    faultline: Callable[..., Any], demo_store: Path, tmp_path: Path
) -> None:
    asked = ("report", "--store", demo_store, "--kind", "monday", "--last", "week")
    said = faultline(*asked, "--as", "slack", "--out", "-")
    assert said.code == 0, said.err
    assert said.json["blocks"][0]["text"]["type"] == "mrkdwn"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_redacted_lists_name_nobody(faultline: Callable[..., Any], demo_store: Path) -> None:
    plain = faultline("failures", "--list", "--limit", 50, "--store", demo_store)
    hidden = faultline("failures", "--list", "--limit", 50, "--store", demo_store, "--redact")
    users = {row["user"] for row in plain.json}
    assert users
    assert not any(user in hidden.out for user in users)
    pairs = {(a["user"], b["user"]) for a, b in zip(plain.json, hidden.json, strict=True)}
    assert len(pairs) == len(users)
    for command in (("incidents",), ("incident", "latest")):
        said = faultline(*command, "--store", demo_store, "--redact", "--format", "json")
        assert said.code == 0
        assert not any(f'"{user}"' in said.out for user in users)


REFUSED = {
    "an incident that is not there": (["--incident", "abc"], "incident 'abc' is not in the store"),
    "a node that is not there": (["--node", "abc"], "node 'abc' is not in the store"),
    "no incident named": (["--kind", "incident"], "--kind incident needs --incident"),
    "no node named": (["--kind", "node"], "--kind node needs --node"),
    "two at a time": (["--incident", "a", "--node", "b"], "ask for one at a time"),
    "another kind": (["--kind", "fleet", "--node", "b"], "does not go with --kind fleet"),
    "two periods": (["--last", "week", "--from", "2026-01-01"], "in place of --from and --to"),
    "mail without a server": (["--mail-to", "a@example.org"], "no mail server is named"),
    "mail to nobody": (["--mail-to", "x"], "--mail-to must be addresses"),
    "no store": (["--store", "nowhere"], "nowhere: holds no store"),
    "an unknown form": (
        ["--as", "html,docx"],
        "--as must be one of html, pdf, xlsx, md, slack, json, got 'docx'",
    ),
    "two forms printed": (["--as", "html,md", "--out", "-"], "--out - prints one form"),
    "a mail of nothing": (["--out", "-", "--mail-to", "a@b.c"], "--out - writes none"),
    "an unknown kind": (["--kind", "weather"], "invalid choice: 'weather'"),
    "a file as folder": (["--out", __file__], "name another folder"),
    "a period backwards": (["--from", "2026-02-01", "--to", "2026-01-01"], "must be before --to"),
    "an unknown cluster": (["--cluster", "x"], "--cluster must be one of the store's, got 'x'"),
    "a level in percent": (["--conf-level", "95"], "pass 0.95 for 95 %"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_report_that_cannot_be_is_refused(
    refused: Callable[..., str], demo_store: Path, tmp_path: Path, name: str
) -> None:
    options, message = REFUSED[name]
    store = [] if "--store" in options else ["--store", demo_store]
    out = [] if "--out" in options else ["--out", tmp_path]
    assert message in refused("report", *store, *out, *options)
