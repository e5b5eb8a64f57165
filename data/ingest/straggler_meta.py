"""The meta file of a straggler trace: sizes of the job, as flat YAML (`key: value` lines)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from data.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

SIZES: Final = ("dp_size", "pp_size", "tp_size", "dsp_size", "vpp_size")
"""Sizes of data, pipeline, tensor, data-sequence and virtual pipeline parallelism."""
_IN_WORLD = ("dp_size", "pp_size", "tp_size", "dsp_size")
_LARGEST = 2**31 - 1
_LINE = re.compile(r"(?P<key>[A-Za-z_][\w-]*)\s*:(?:\s+(?P<value>.*))?")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)\s*(?:#.*)?")
_WHOLE = re.compile(r"\+?\d{1,10}")


@dataclass(frozen=True)
class TraceMeta:
    """What is known of the job of a trace; None where its meta file, or the trace, says nothing.

    Attributes
    ----------
    trial_name, run_id
        Names of the trial and its run, for people; a `run_id` that is a number is one.
    dp_size, pp_size, tp_size, dsp_size, vpp_size
        Sizes, each at least 1; a trace without a meta file shows only dp, pp and vpp.
    world_size
        dp x pp x tp x dsp: GPUs of the job.
    """

    trial_name: str | None
    run_id: str | int | None
    dp_size: int
    pp_size: int
    tp_size: int | None
    dsp_size: int | None
    vpp_size: int
    world_size: int | None


def read_meta(path: Path, name: str) -> TraceMeta:
    """The sizes that a meta file states.

    Read are lines `key: value` with plain or quoted values, comments, and the marks of a document;
    keys that are not known are left alone. `world_size` may be absent.

    Raises
    ------
    SourceError
        Where the file cannot be read, a line is none of these, a size is missing or no positive
        whole number, or `world_size` is not the product of the others.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{name}: cannot be read ({error}): give the meta file of the trace"
        ) from None
    pairs = _pairs(text, name)
    sizes = {key: _size(pairs, key, name) for key in SIZES}
    world_size = math.prod(sizes[key] for key in _IN_WORLD)
    if "world_size" in pairs and (stated := _size(pairs, "world_size", name)) != world_size:
        raise SourceError(
            f"{name}: world_size must be dp_size x pp_size x tp_size x dsp_size = {world_size:,}, "
            f"got {stated:,}: correct the size that is wrong"
        )
    run_id = _text(pairs.get("run_id"))
    return TraceMeta(
        trial_name=_text(pairs.get("trial_name")),
        run_id=int(run_id) if run_id is not None and _WHOLE.fullmatch(run_id) else run_id,
        **sizes,
        world_size=world_size,
    )


def _pairs(text: str, name: str) -> dict[str, str]:
    """Keys and values of the lines."""
    pairs: dict[str, str] = {}
    for line_no, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() in ("---", "..."):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise SourceError(
                f"{name}: line {line_no} must be `key: value`, got {line.strip()[:60]!r}: write "
                "one size a line"
            )
        if match["key"] in pairs:
            raise SourceError(f"{name}: line {line_no} states {match['key']} again: keep one")
        pairs[match["key"]] = _value(match["value"] or "")
    return pairs


def _value(text: str) -> str:
    """A value without quotes and comment."""
    quoted = _QUOTED.fullmatch(text.strip())
    return quoted["text"] if quoted else re.split(r"(?:^|\s)#", text)[0].strip()


def _text(value: str | None) -> str | None:
    return None if value in (None, "", "null", "~") else value


def _size(pairs: dict[str, str], key: str, name: str) -> int:
    """A size: a positive whole number."""
    value = _text(pairs.get(key))
    if value is None:
        raise SourceError(f"{name}: states no {key}: add a line `{key}: N`")
    if not _WHOLE.fullmatch(value) or not 1 <= int(value) <= _LARGEST:
        raise SourceError(
            f"{name}: {key} must be a positive whole number, got {value[:40]!r}: write e.g. "
            f"`{key}: 8`"
        )
    return int(value)
