"""Masks secrets in everything that an ingest is about to store: texts of records, rejected lines.

It lies between readers and store, so that no reader can forget it. Keys of records were made from
the text as it was read: the same record twice stays one record, two that differ in a secret two.

Secrets are tokens, keys and passwords, as they stand in command lines and logs. What is masked is
known by its form (a token of GitHub), by its place (behind `Authorization:`, in an address before
the `@`) or by its name (`--password x`, `API_KEY=x`). What only looks like chance, a commit hash or
data in base64, is no secret. A text that was masked stays as it is.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.patterns import lazily
from data.ingest.formats.text_columns import literal
from data.ingest.reader import Rejected, Rejections
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import duckdb
    import pandas as pd

    from data.ingest.reader import Batch

MASK = "[masked]"
"""What stands in the place of a secret."""
SUSPECT = (
    r"pass(?:w|c|p|[\"'\\=]|\s)|pwd|secret|credential|token[\"'\\\]]{0,6}\s{0,3}[=: ]|"
    r"key[\"'\\\]]{0,6}\s{0,3}[=: ]|_auth\b|wandb[. ]login|bearer\s|basic\s|authorization|cookie:|"
    r"sig(?:nature)?=|mysql|curl\s|docker\s|://[^/\s]{1,300}@|private key|"
    r"a[ksgir][irpo]a[a-z0-9]{15}|aiza|ya29\.|gocspx-|\bhf_|api_org_|gh[pousr]_|github_pat_|glpat-|"
    r"xox[a-z]-|xapp-|hooks\.slack|\bsk-|nvapi-|wandb_v1_|\blocal-|eyj|npm_|pypi-|dckr_pat_|"
    r"[sr]k_live_|sg\."
)
"""What each text that holds a secret holds too, in letters of any case: a cheap test for nearly
all texts. Written so that RE2 (DuckDB, Arrow) and Python read it alike."""

_FORMS = lazily(
    r"\b(?:A(?:KI|SI|GP|ID|RO)A[A-Z0-9]{16}\b"  # AWS
    r"|AIza[\w-]{35,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|(?:hf|api_org)_[A-Za-z0-9]{30,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,}"  # GitHub, GitLab
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
    r"|wandb_v1_\w{20,}|local-[0-9a-f]{40}\b"  # Weights & Biases
    r"|sk-(?:[a-z]+\d*-){0,3}[A-Za-z0-9_-]{0,64}[A-Za-z0-9]{20}[\w-]*"  # OpenAI, Anthropic
    r"|nvapi-[\w-]{20,}|npm_[A-Za-z0-9]{36}\b|pypi-[\w-]{50,}|dckr_pat_[\w-]{20,}"
    r"|[sr]k_live_[A-Za-z0-9]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*){0,3})"  # JSON Web Token
)
_PRIVATE_KEY = lazily(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?=[\s\\nr\"',+]*(?:[A-Za-z0-9+/]{16}|Proc-Type|Version))[^-]*+(?:-(?!----)[^-]*+)*+"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PLACES = (
    # name:password@host, and one token before the @
    (lazily(r"(://[^\s/:@\"']{0,100}:)(?!\[masked\]@)[^\s/\"']{1,300}@"), r"\1" + MASK + "@"),
    (lazily(r"(://)[A-Za-z0-9_-]{20,300}@"), r"\1" + MASK + "@"),
    (lazily(r"(hooks\.slack\.com/services/)[\w/]{10,}", re.IGNORECASE), r"\1" + MASK),
    (
        lazily(
            r"([?&;](?:sig|signature|x-(?:amz|goog)-(?:signature|security-token|credential)"
            r"|access_token|auth)=)(?!\[masked\])[^&\s\"'<>]{4,}"
            r"|(\bsig=)[A-Za-z0-9%+/_-]{20,}={0,2}",
            re.IGNORECASE,
        ),
        lambda found: (found[1] or found[2]) + MASK,
    ),
    (
        lazily(
            r"(\bauthorization\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}\\{0,3}[\"']?"
            r"(?:basic|bearer|token|digest|negotiate|apikey)\s+)(?!\[masked\])[^\s\"',;\\]+",
            re.IGNORECASE,
        ),
        r"\1" + MASK,
    ),
    (
        lazily(r"(\bbearer\s+)(?=[A-Za-z._~+/-]{0,60}\d)[A-Za-z0-9._~+/-]{12,}=*", re.I),
        r"\1" + MASK,
    ),
    (lazily(r"(\bBasic\s+)(?=[A-Za-z+/]{0,60}[\d=])[A-Za-z0-9+/]{12,}={0,2}"), r"\1" + MASK),
    (
        lazily(r"((?:\bset-)?\bcookie:\s*)(?=[\w.-]+=)[^\"'\r\n]+", re.IGNORECASE),
        r"\1" + MASK,
    ),
    (lazily(r"(\bwandb[. ]login\b.{0,60}?)\b[0-9a-f]{40}\b"), r"\1" + MASK),
    (
        lazily(
            r"(\bsshpass\s+-p\s*|\bdocker\s+login\b[^|;&\n]{0,200}?\s-p[ =]?"
            r"|\bmysql(?:dump|admin)?\b[^|;&\n]{0,200}?\s-p"
            r"|\bcurl\b[^|;&\n]{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)"
            r"(?!\[masked\])[^\s\"']+"
        ),
        r"\1" + MASK,
    ),
)
_KEYS = (
    r"pass(?:w(?:or)?d|phrase|code)|(?<=[A-Za-z]_)pwd|(?<=-)pwd|(?<=;)pwd|(?<=; )pwd|(?<=--)pass|"
    r"(?-i:(?<=[A-Z]_)PASS)|secret(?:[_-]?(?:access[_-]?)?key)?|credentials?|"
    r"(?:api|access|account|private|auth|encryption|signing|shared|license|wandb|hf)[_-]?key|"
    r"(?<![A-Za-z0-9])_auth"
)
_NOT_OF_MODELS = "".join(
    f"(?<!{word}_)(?<!{word}-)"
    for word in ("pad", "eos", "bos", "unk", "sep", "cls", "mask", "special", "max", "num", "image")
)
"""Before `token`: words of a model's vocabulary, which is no secret."""
_NAME = rf"(?P<name>(?<!/)(?:{_KEYS})|{_NOT_OF_MODELS}token)(?:_?\d{{1,2}})?"
_QUOTED = r"(?P<quote>\\{0,3}[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n]){1,2000})(?P=quote)"
_OPTION = re.compile(
    rf"{_NAME}(?P<between>=|\s{{1,3}}(?!-))(?:{_QUOTED}|(?P<bare>[^\s\"']\S*))", re.IGNORECASE
)
_BEFORE_OPTION = lazily(r"(?<![\w-])--?[\w.-]{0,60}\Z")
_NAMED = lazily(
    rf"{_NAME}(?P<between>\\{{0,3}}[\"']?\]?\s{{0,3}}(?:=>?|:)\s{{0,3}}[bru]?)"
    rf"(?:{_QUOTED}|(?P<bare>[^\s\"',;&|()<>{{}}\[\]]+))",
    re.IGNORECASE,
)
_NOTHING = lazily(
    r"\[masked\].*|(?i:none|null|nil|true|false|undefined|unset|n/a|str|string|bytes|int|bool|self"
    r"|optional|required|redacted|hidden|masked|not|is|was|or|and)[,;]?|[*.#-]+|x{3,}|\d{1,3}"
    r"|\$\{?\w+\}?|\$\(.*|%\(?\w+\)?s?|<[^<>]*>|\{+[^{}]*\}+"  # a variable's name, a place to fill
    r"|(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?|\w+:/\S*",  # a path
    re.DOTALL,
)
"""Values that are no secret, whatever their name."""
_OF_AWS = lazily(r"[A-Za-z0-9/+]{40}")
_FIRST_WORDS = (
    "pass", "pwd", "secret", "credential", "api", "access", "account", "private", "auth", "encrypt",
    "signing", "shared", "license", "wandb", "hf", "_auth", "token",
)  # fmt: skip
"""What names begin with: they are sought by these, since a pattern tried at each sign of a line
costs thirty times as much."""
_BEGIN_OF_LINE = lazily(r"(?:^|\n)(?:export |declare -x |[\s-]+)?[\w.-]*\Z")
_END_OF_LINE = lazily(r"\s*(?:$|[\r\n])")
_LONG_TOKEN, _TOKEN = 16, 8
_FREE = ("text", "job", "nested")
"""What a table says of columns in which anybody may have written anything."""
_MASKED = "faultline_masked"
_FILE = ("cluster", "job_id", "file")


def mask(batch: Batch, connection: duckdb.DuckDBPyConnection) -> None:
    """Masks the secrets in all texts of a batch, in place."""
    import duckdb  # here: whoever reads a trace alone does without it

    for table, rows in batch.tables.items():
        texts = [
            name for name, column in records()[table].columns.items() if column.people in _FREE
        ]
        if isinstance(rows, pa.Table):
            batch.tables[table] = _masked_table(rows, texts)
        elif isinstance(rows, duckdb.DuckDBPyRelation):
            batch.tables[table] = _masked_relation(rows, texts, connection)
        else:
            _mask_frame(rows, texts)
    batch.rejected = masked_rejections(batch.rejected)


def _masked_relation(
    rows: duckdb.DuckDBPyRelation, texts: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """The same rows; the few suspects among their texts pass through Python."""
    import duckdb

    with suppress(duckdb.NotImplementedException):  # this connection has it
        connection.create_function(_MASKED, masked, ["VARCHAR"], "VARCHAR")
    kinds = dict(zip(rows.columns, map(str, rows.types), strict=True))
    present = [f'"{name}"' for name in texts if kinds.get(name) == "VARCHAR"]
    values = ", ".join(
        f"CASE WHEN regexp_matches({name}, {literal(SUSPECT)}, 'i') THEN {_MASKED}({name}) "
        f"ELSE {name} END AS {name}"
        for name in present
    )
    return rows.project(f"* REPLACE ({values})") if values else rows


def _masked_table(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The same rows, a piece at a time: a log is one piece."""
    present = [name for name in texts if name in rows.column_names]
    pieces = [_masked_piece(piece, present) for piece in rows.to_batches()]
    return pa.Table.from_batches(pieces, rows.schema)


def _masked_piece(piece: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    for name in texts:
        changed = _masked_texts(piece[name], _follows(piece))
        if changed is not None:
            place = piece.schema.get_field_index(name)
            piece = piece.set_column(place, piece.schema.field(name), changed)
    return piece


def _follows(piece: pa.RecordBatch) -> Callable[[int], bool]:
    """Whether the row of a place is the next line of the same file; never where no lines are."""
    if "line_no" not in piece.schema.names:
        return lambda at: False
    numbers, files = piece["line_no"], [piece[name] for name in _FILE]

    def follows(at: int) -> bool:
        return (
            0 < at < len(numbers)
            and numbers[at].as_py() == numbers[at - 1].as_py() + 1
            and all(each[at] == each[at - 1] for each in files)
        )

    return follows


def _mask_frame(rows: pd.DataFrame, texts: Sequence[str]) -> None:
    for name in texts:
        if name in rows and len(rows):
            changed = _masked_texts(pa.array(rows[name], pa.string()), lambda at: False)
            if changed is not None:
                rows[name] = changed.to_pandas().astype("string").array


def _masked_texts(texts: pa.Array, follows: Callable[[int], bool]) -> pa.Array | None:
    """The texts without secrets; None where they hold none."""
    suspects = pc.indices_nonzero(pc.match_substring_regex(texts, SUSPECT, ignore_case=True))
    if len(suspects) == 0:
        return None
    changed = masked_lines(suspects.to_pylist(), lambda at: texts[at].as_py() or "", follows)
    if not changed:
        return None
    values = texts.to_pylist()
    for place, text in changed.items():
        values[place] = text
    return pa.array(values, texts.type)


def masked_rejections(rejected: Rejections) -> Rejections:
    """The same records; a private key is found where its lines are rejected one by one."""
    if not rejected:
        return rejected
    numbers = [row.line_no for row in rejected]

    def follows(at: int) -> bool:
        return 0 < at < len(numbers) and numbers[at] == numbers[at - 1] + 1

    texts = _masked_texts(pa.array([row.raw for row in rejected], pa.string()), follows)
    if texts is None:
        return rejected
    found = Rejections()
    found.by_reason.update(rejected.by_reason)
    pairs = zip(rejected, texts.to_pylist(), strict=True)
    list.extend(found, (Rejected(row.line_no, row.reason, text) for row, text in pairs))
    return found


def masked_log(lines: Sequence[str]) -> list[str]:
    """The lines of one log without secrets; a private key may take several."""
    texts = _masked_texts(pa.array(lines, pa.string()), lambda at: 0 < at < len(lines))
    return [*lines] if texts is None else texts.to_pylist()


@lru_cache(4_096)
def masked(text: str) -> str:
    """The text with MASK in the place of each secret.

    Examples
    --------
    >>> masked("train.py --password hunter2 --seed 7 https://me:pw@host/x API_KEY=abc")
    'train.py --password [masked] --seed 7 https://me:[masked]@host/x API_KEY=[masked]'
    >>> masked("HEAD is 2f5b1c0a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a, --max-token 4096")
    'HEAD is 2f5b1c0a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a, --max-token 4096'
    """
    text = _PRIVATE_KEY.sub(f"-----BEGIN PRIVATE KEY-----{MASK}", text)
    text = _FORMS.sub(MASK, text)
    for pattern, replacement in _PLACES:
        text = pattern.sub(replacement, text)
    return _without_named(text)


def _without_named(text: str) -> str:
    """The text without the values that stand behind a name of secrets."""
    parts, done = [], 0
    for place in _places_of_names(text):
        found = _named_value(text, place) if place >= done else None
        part = "bare" if found is None or found["quoted"] is None else "quoted"
        if found is not None and _is_secret(found, found[part]):
            begin, end = found.span(part)
            parts += [text[done:begin], MASK]
            done = end
    return "".join([*parts, text[done:]])


def _places_of_names(text: str) -> list[int]:
    """Where a name of secrets may begin, in order."""
    lower = text.lower() if text.isascii() else re.sub("[A-Z]+", lambda word: word[0].lower(), text)
    places = set()
    for word in _FIRST_WORDS:
        at = lower.find(word)
        while at >= 0:
            places.add(at)
            at = lower.find(word, at + 1)
    return sorted(places)


def _named_value(text: str, place: int) -> re.Match[str] | None:
    """The name at a place with its value; None where none stands there."""
    if _BEFORE_OPTION.search(text[max(0, place - 64) : place]):
        found = _OPTION.match(text, place)
        if found is not None:
            return found
    return _NAMED.match(text, place)


def _is_secret(found: re.Match[str], value: str) -> bool:
    """Whether the value that stands behind a name is one that nobody may read."""
    if _NOTHING.fullmatch(value) and not _OF_AWS.fullmatch(value):
        return False
    name, has_digit = found["name"], any(sign.isdigit() for sign in value)
    if name.lower() == "token":
        named_so = name.isupper() or found["between"].isspace() or found.re is _OPTION
        long_enough = len(value) >= (_TOKEN if named_so else _LONG_TOKEN)
        return long_enough and has_digit and not value.isdecimal()
    if found["quoted"] is None and ":" in found["between"]:  # `password: wrong` may be prose
        alone = _BEGIN_OF_LINE.search(found.string, 0, found.start())
        return has_digit or bool(alone and _END_OF_LINE.match(found.string, found.end()))
    return True


_KEY_BEGINS = lazily(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_ENDS = lazily(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_LINE = lazily(r"(?<![^\s:|>\]])[A-Za-z0-9+/]+={0,2}\s*$")
_KEY_HEADER = lazily(r"(?:^|\s)(?:Proc-Type|DEK-Info|Version): |^\s*$")
_LEAST_OF_KEY = 16
"""Signs of a line that may be of a key, where its end is not there to say so."""
_MOST_LINES_OF_KEY = 500


def masked_lines(
    suspects: Iterable[int], line: Callable[[int], str], follows: Callable[[int], bool]
) -> dict[int, str]:
    """Place -> text, of each line that holds a secret, a part of a private key included.

    Parameters
    ----------
    suspects : iterable of int
        Places of the lines that may hold one.
    line : callable
        The line of a place.
    follows : callable
        Whether the line of a place stands right behind the one of the place before.
    """
    changed: dict[int, str] = {}
    for place in suspects:
        text = line(place)
        if (without := masked(text)) != text:
            changed[place] = without
        if _KEY_BEGINS.search(text) and not _KEY_ENDS.search(text):
            changed |= _of_key(place, 1, line, follows)
        elif _KEY_ENDS.search(text) and not _KEY_BEGINS.search(text):
            changed |= _of_key(place, -1, line, follows)
    return changed


def _of_key(
    place: int, step: int, line: Callable[[int], str], follows: Callable[[int], bool]
) -> dict[int, str]:
    """The lines of a private key behind its first line, or before its last one."""
    changed: dict[int, str] = {}
    for at in range(place + step, place + step * _MOST_LINES_OF_KEY, step):
        if not follows(max(at, at - step)):
            break
        text = line(at)
        found = _KEY_LINE.search(text)
        if found is None and not _KEY_HEADER.search(text):
            break
        beside_end = (step < 0 and at == place - 1) or (
            step > 0 and follows(at + 1) and bool(_KEY_ENDS.search(line(at + 1)))
        )
        if found is not None:
            if len(found[0].strip()) < _LEAST_OF_KEY and not beside_end:
                break
            changed[at] = text[: found.start()] + MASK
    return changed
