"""Secrets in what is read: masked by form, place and name; what only looks like one stays."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions import Options, ingest_files
from data.ingest.masking import MASK, SUSPECT, masked
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from data.ingest import IngestResult

HEX, LETTERS = "0123456789abcdef0123456789abcdef01234567", "abcdEFGHijklMNOPqrstUVWXyz0123456789AB"
SECRETS = {
    "AWS key id": ("export AWS_ACCESS_KEY_ID={}", "AKIA" + "IOSFODNN7EXAMPLE"),
    "AWS secret": ("AWS_SECRET_ACCESS_KEY={} python", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "Google": ("key {} of the map", "AIza" + LETTERS[:35]),
    "Hugging Face": ("huggingface-cli login {}", "hf_" + LETTERS[:34]),
    "GitHub": ("git clone https://x:{}@github.com/a/b", "ghp_" + LETTERS[:36]),
    "GitLab": ("using {} for CI", "glpat-" + LETTERS[:20]),
    "Slack": ("post to {} failed", "xoxb-" + "1234567890-abcdefABCDEF"),
    "W&B": ("wandb login {}", HEX),
    "W&B, by name": ("WANDB_API_KEY={} srun train", HEX),
    "OpenAI": ("client of {}", "sk-proj-" + LETTERS),
    "JWT": ("got {}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpM"),
    "Bearer": ("Authorization: Bearer {}", LETTERS),
    "Basic": ('-H "Authorization: Basic {}"', "dXNlcjpodW50ZXIyLW9mLW1pbmU="),
    "user and password in an address": ("pip -i https://ada:{}@host/simple", "hunter2"),
    "SAS": ("https://a.blob.core/x?sv=2022&sig={}&se=2026", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA%3D"),
    "option": ("train.py --password {} --seed 7", "hunter2"),
    "option of one letter": ("train.py --password {} --seed 7", "x"),
    "several": ("run --hf-token={} PASSWORD=[masked] --token [masked]", "abc12345"),
    "fine-grained of GitHub": ("using {} for CI", "github_pat_" + LETTERS[:24]),
    "option with =": ("train.py --db-password={} --seed 7", "hunter2"),
    "api key": ("serve --api-key {}", "a1b2c3d4e5"),
    "variable": ("MYSQL_PASSWORD={} run.sh", "hunter2"),
    "JSON": ('config {{"secret_key": "{}", "steps": 7}}', "s3cr3t of mine"),
    "YAML": ("password: {}", "correct-horse-7"),
    "curl": ("curl -u ada:{} https://host", "hunter2"),
    "mysql": ("mysql -uada -p{} db", "hunter2"),
    "sshpass": ("sshpass -p {} ssh n1", "hunter2"),
}
LURES = [
    f"HEAD is now at {HEX} Fix the loader", f"sha256:{HEX}{HEX[:24]} loaded",
    "checkpoint /ckpt/step_1000/model-00001-of-00008.safetensors written",
    "run 3f2504e0-4f89-11d3-9a0c-0305e82c3301 begins",
    "data: " + base64.b64encode(bytes(range(60))).decode(),
    "--max-tokens 4096 --tokenizer gpt2 --token-dropout 0.1", "pad_token=<pad> eos_token_id=2",
    "tokens per second: 41,200 | token loss 2.31", "KeyError: 'password'",
    "password authentication failed for user ada", "the password is wrong, token expired",
    "--password-file /run/secrets/db", "PASSWORD=$PASSWORD", "api_key: null", "key=value",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=123, GPU has fallen off the bus.",
    "secret sharing of 3 of 5 shards", "basic block 17 of the model", "signal 9: killed",
    "https://github.com/org/repo/commit/" + HEX, "ssh://git@host/repo", "user@host:/path",
    "NCCL INFO Bootstrap : Using ib0:10.0.0.1<0>", "monkey=7 keyboard: us",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_and_what_stands_around_it_stays(name: str) -> None:
    line, secret = SECRETS[name]
    found = masked(line.format(secret))
    assert secret not in found
    assert found == line.format(MASK) or (name == "GitHub" and MASK in found)
    assert masked(found) == found


@pytest.mark.parametrize("lure", LURES)
def test_what_only_looks_like_a_secret_stays(lure: str) -> None:
    assert masked(lure) == lure


@given(before=st.text(max_size=40), after=st.text(max_size=40), name=st.sampled_from([*SECRETS]))
def test_no_text_around_it_saves_a_token_of_known_form(before: str, after: str, name: str) -> None:
    token = "ghp_" + LETTERS[:36]
    assert token not in masked(f"{before} {token} {after}")
    text = f"{before}\n{SECRETS[name][0].format(SECRETS[name][1])}\n{after}"
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize("name", SECRETS)
def test_the_cheap_test_lets_no_secret_pass(name: str) -> None:
    line, secret = SECRETS[name]
    for text in (line.format(secret), line.format(secret).replace(" ", "  ")):
        found = pc.match_substring_regex(pa.array([text]), SUSPECT, ignore_case=True)
        assert found.to_pylist() == [True] or masked(text) == text


KEY = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n"
KEY_LINES = [base64.b64encode(bytes([n] * 48)).decode() for n in (1, 2, 3)]
SACCT = """JobID|JobName|State|Submit|Start|End|NNodes|AllocTRES|NodeList|SubmitLine|Comment
1|train|COMPLETED|{day}T00:00:00|{day}T00:00:00|{day}T01:00:00|1|gres/gpu=8|n1|sbatch --api-key hunter2-of-1 run.sh|
2|train --password hunter2-in-name|FAILED|{day}T00:00:00|{day}T00:00:00|{day}T01:00:00|1|gres/gpu=8|n1|srun|
3|train|ODD|{day}T99:00:00|x|y|1|gres/gpu=8|n1|sbatch --password hunter2-rejected|
"""


def _texts(root: Path) -> dict[str, str]:
    """All texts of a store, by table."""
    store = Store.open(root)
    tables = [name for (name,) in store.rows("SELECT table_name FROM duckdb_tables()")]
    found = {name: json.dumps(store.rows(f"FROM {name}"), default=str) for name in tables}
    store.close()
    return found


def _ingested(root: Path, source: str, path: Path, text: str) -> IngestResult:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    ((result,), _) = ingest_files(root, source, [str(path)], Options(timezone="UTC"))
    return result


def test_no_secret_of_any_source_is_in_the_store(tmp_path: Path) -> None:
    root, day = tmp_path / "store", "2026-01-05"
    sacct = _ingested(root, "sacct", tmp_path / "jobs.txt", SACCT.format(day=day))
    assert (sacct.rows_kept, sacct.rows_rejected) == (2, 1)
    again = _ingested(root, "sacct", tmp_path / "jobs.txt", SACCT.format(day=day))
    assert (again.rows_kept, again.tables) == (2, {"jobs": 0})
    key = KEY.format("\n".join(KEY_LINES))
    log = f"begin\nWANDB_API_KEY={HEX}\n{key}RuntimeError: CUDA error\nlast {KEY_LINES[0]}\n"
    _ingested(root, "job-log", tmp_path / "logs" / "slurm-2.out", log)
    kernel = (
        f"{day}T00:30:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, x --token={LETTERS}\n"
    )
    assert _ingested(root, "kernel-log", tmp_path / "kernel.log", kernel).rows_kept == 1
    texts = _texts(root)
    everything = "".join(texts.values())
    for secret in ("hunter2", HEX, LETTERS, KEY_LINES[1], KEY_LINES[2]):
        assert secret not in everything, secret
    assert f"sbatch --api-key {MASK} run.sh" in texts["jobs"]
    assert f"train --password {MASK}" in texts["jobs"]
    assert f"--password {MASK}" in texts["rejected_rows"]
    assert "RuntimeError: CUDA error" in texts["job_logs"]
    assert KEY_LINES[0] in texts["job_logs"]  # alone, outside of a key, it is data
