"""TOML that people write: read within limits, each section checked against what may stand in it.

A section is declared as key -> Check. A mistake is one line: the file, the place in it, the rule,
the value found and what to do.
"""

from __future__ import annotations

import difflib
import reprlib
import tomllib
import zoneinfo
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from data.current import read_small

if TYPE_CHECKING:
    from pathlib import Path

    from data.errors import DataError

MAX_BYTES = 1_000_000
"""Size of a document."""
MAX_TEXT = 200
"""Characters of a name."""


class Broken(NamedTuple):
    """A rule that a value breaks, in words that go on after "must be"."""

    rule: str
    remedy: str = "mend it"


Check = Callable[[Any], Broken | None]
"""Which rule a value breaks; None where it holds."""


@dataclass(frozen=True)
class Toml:
    """A document or a part of it: what its mistakes are told of, and as which error."""

    origin: str
    error: type[DataError]

    def document(self, content: bytes) -> dict[str, Any]:
        """What the bytes of a file say, of which nothing is checked yet.

        Raises
        ------
        DataError
            The `error`, where they are too many or no TOML; so do all methods.
        """
        if len(content) > MAX_BYTES:
            raise self.error(f"{self.origin}: is larger than {MAX_BYTES:,} bytes: shorten it")
        try:
            return tomllib.loads(content.decode("utf-8-sig"))
        except ValueError as error:  # broken TOML, no UTF-8, or a number of thousands of digits
            raise self.error(f"{self.origin}: is not TOML ({error}): mend that place") from None
        except RecursionError:
            raise self.error(
                f"{self.origin}: is nested too deeply: no setting needs that"
            ) from None

    def read(self, path: Path, *, needed: bool = True) -> bytes:
        """What a file holds, no more of it than a document may.

        One that a person names (`needed`) may be a pipe, as `--config /dev/stdin`. One that is
        looked for must be a regular file, and nothing is read where none is.
        """
        try:
            if needed:
                with path.open("rb") as stream:
                    return stream.read(MAX_BYTES + 1)
            return read_small(path, MAX_BYTES)
        except OSError as error:
            if not needed and isinstance(error, FileNotFoundError | NotADirectoryError):
                return b""
            told = f"cannot be read ({error.strerror}): check the path and its access"
            raise self.error(f"{self.origin}: {told}") from None

    def section(
        self,
        place: str,
        values: object,
        checks: Mapping[str, Check] | None = None,
        *,
        needed: Collection[str] = (),
        written: str = "",
    ) -> dict[str, Any]:
        """The values of a section, each checked; without checks anything may stand in it.

        `place` is its name, empty for the whole document; `written` how its header is written.
        """
        if not isinstance(values, dict):
            raise self.wrong(place, values, Broken("a section", f"write [{written or place}]"))
        for key, value in values.items():
            own = f"{place}.{key}" if place else key
            if checks is not None and key not in checks:
                raise self.error(f"{self._at(own)} is unknown: {nearest(key, checks)}")
            self.checked(own, value, anything if checks is None else checks[key])
        for key in needed:
            if not values.get(key):
                raise self.error(f"{self._at(place)} needs {key}: state it")
        return values

    def checked(self, place: str, value: Any, check: Check) -> Any:
        """A value that holds."""
        if (broken := check(value)) is not None:
            raise self.wrong(place, value, broken)
        return value

    def known(self, place: str, word: str, words: Collection[str]) -> str:
        """A word that is one of many."""
        if word not in words:
            raise self.error(f"{self._at(place)} {word!r} is unknown: {nearest(word, words)}")
        return word

    def wrong(self, place: str, value: object, broken: Broken) -> DataError:
        """What is told of a value, which is cut where it is long."""
        cut = reprlib.Repr()
        cut.maxstring = cut.maxlong = cut.maxother = 100
        told = f"must be {broken.rule}, got {cut.repr(value)}: {broken.remedy}"
        return self.error(f"{self._at(place)} {told}")

    def _at(self, place: str) -> str:
        return f"{self.origin}: {place}" if place else self.origin


def setting(default: Any, check: Check) -> Any:
    """A field of a dataclass that a section states, with its check."""
    return field(default=default, metadata={"check": check})


def settings(declared: type) -> dict[str, Check]:
    """Fields of a dataclass -> their checks."""
    return {item.name: item.metadata.get("check", anything) for item in fields(declared)}


def must_be(rule: str, holds: Callable[[Any], bool], remedy: str = "mend it") -> Check:
    """A check of one rule."""
    return lambda value: None if holds(value) else Broken(rule, remedy)


def anything(value: object) -> None:
    """Of a value that somebody else checks, or nobody needs to."""


def text(value: object) -> Broken | None:
    """A text of one line or none, not longer than a name."""
    if not isinstance(value, str):
        return Broken("text", "quote it")
    return Broken(f"at most {MAX_TEXT} characters", "shorten it") if len(value) > MAX_TEXT else None


def filled(value: object) -> Broken | None:
    """A text of any length that is not blank."""
    if isinstance(value, str) and not value.strip():
        return Broken("no empty text", "state it, or leave the key out")
    return None if isinstance(value, str) else Broken("text", "quote it")


def sign(value: object) -> Broken | None:
    """A text that may be a blank, as a delimiter is."""
    return None if isinstance(value, str) and value else Broken("text", "quote it")


def number(
    least: float, most: float, rule: str = "", *, whole: bool = False, above: bool = False
) -> Check:
    """A number within [least, most], or within (least, most] where it lies `above` the least."""
    kinds = (int,) if whole else (int, float)
    return must_be(
        rule or f"a {'whole ' * whole}number from {least:,} to {most:,}",
        lambda value: (
            type(value) in kinds and least <= value <= most and not (above and value == least)
        ),
    )


def choice(words: Collection[str]) -> Check:
    """One of some words."""
    return must_be(
        f"one of {', '.join(words)}",
        lambda value: isinstance(value, str) and value in words,
        "choose one",
    )


def texts(rule: str) -> Check:
    """A list of texts."""
    return must_be(
        rule,
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    )


flag = must_be("true or false", lambda value: isinstance(value, bool))


def zone(value: object) -> Broken | None:
    """Name of a time zone."""
    if not isinstance(value, str):
        return Broken("text", "quote it")
    known = zoneinfo.available_timezones()
    if value in known:
        return None
    return Broken("an IANA zone", nearest(value, known, example="Europe/Berlin"))


def nearest(stated: str, known: Collection[str], example: str | None = None) -> str:
    """What was probably meant, else what there is."""
    close = difflib.get_close_matches(stated, list(known), n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"e.g. {example!r}" if example else f"there are {', '.join(known)}"
