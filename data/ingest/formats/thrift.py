"""Reads the compact protocol of Thrift, in which Parquet states what it holds; trusts nothing.

Only what a `Shape` names is kept, the rest is passed over. It is stricter than other readers, so
that none of them can take a file for another than was checked: a number keeps to its width, a field
stands once and is of the type that was declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FLAG, INT32, INT64, TEXT, LIST, STRUCT = 1, 5, 6, 8, 9, 12
"""Types of fields, as they are written; a flag that is not set is 2."""
Shape: TypeAlias = "Mapping[int, int | tuple[int, Shape]]"
"""Number of a field -> its type; of structs, and lists of them, with their own shape."""
MOST_LEVELS: Final = 24
"""Structs in structs: a footer has about ten."""
_BYTE, _INT16, _DOUBLE, _SET, _UUID = 3, 4, 7, 10, 13
_BITS: Final = {_INT16: 16, INT32: 32, INT64: 64}
_SIZES: Final = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_LONGEST_VARINT = 63


class ThriftError(ValueError):
    """What was read is no such protocol, or ends early."""


class Thrift:
    """Some bytes, read from a place on."""

    def __init__(self, content: bytes | memoryview, at: int = 0) -> None:
        self._content, self.at = content, at

    def struct(self, shape: Shape, level: int = 0) -> dict[int, Any]:
        """The fields of a struct that its shape names.

        Raises
        ------
        ThriftError
            Where it is broken or ends early.
        """
        if level > MOST_LEVELS:
            raise ThriftError("structs are nested too deep")
        found: dict[int, Any] = {}
        number = 0
        while kind_and_step := self._byte():
            kind, step = kind_and_step & 15, kind_and_step >> 4
            number = number + step if step else self._number(_INT16)
            wanted = shape.get(number)
            if wanted is None:
                self._skip(kind, level)
                continue
            if number in found:
                raise ThriftError(f"field {number} stands twice")
            found[number] = self._kept(kind, wanted, level)
        return found

    def _kept(self, kind: int, wanted: int | tuple[int, Shape], level: int) -> Any:
        """The value of a field that is asked for."""
        declared, below = wanted if isinstance(wanted, tuple) else (wanted, {})
        if kind != declared and not (declared == FLAG and kind == FLAG + 1):
            raise ThriftError(f"a field is of type {kind}, not {declared}")
        if declared == FLAG:
            return kind == FLAG
        if declared == STRUCT:
            return self.struct(below, level + 1)
        if declared == LIST:
            kind, n = self._list()
            if kind != STRUCT and n:
                raise ThriftError(f"a list is of type {kind}, not {STRUCT}")
            return [self.struct(below, level + 1) for _ in range(n)]
        return self._text() if declared == TEXT else self._number(declared)

    def _byte(self) -> int:
        if self.at >= len(self._content):
            raise ThriftError("it ends early")
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > _LONGEST_VARINT:
                raise ThriftError("a number has more than 64 bits")

    def _number(self, kind: int) -> int:
        """A number with a sign."""
        found = self._varint()
        if found >> _BITS[kind]:
            raise ThriftError(f"a number has more than {_BITS[kind]} bits")
        return found >> 1 if not found & 1 else -(found >> 1) - 1

    def _passed(self, n: int) -> None:
        if n > len(self._content) - self.at:
            raise ThriftError("it ends early")
        self.at += n

    def _text(self) -> bytes:
        n = self._varint()
        self._passed(n)
        return bytes(self._content[self.at - n : self.at])

    def _list(self) -> tuple[int, int]:
        """Type and length of a list."""
        head = self._byte()
        n = head >> 4
        n = self._varint() if n == 15 else n
        if n > len(self._content) - self.at:  # each element has a byte at least
            raise ThriftError("it ends early")
        return head & 15, n

    def _skip(self, kind: int, level: int, *, in_list: bool = False) -> None:
        """Passes over a value."""
        if kind in _BITS:
            self._varint()
        elif kind in _SIZES:
            self._passed(_SIZES[kind])
        elif kind == TEXT:
            self._passed(self._varint())
        elif kind in (FLAG, FLAG + 1):  # a field's flag is its type, that of a list a byte
            self._passed(1 if in_list else 0)
        elif kind in (LIST, _SET):
            kind, n = self._list()
            if level > MOST_LEVELS:
                raise ThriftError("lists are nested too deep")
            for _ in range(n):
                self._skip(kind, level + 1, in_list=True)
        elif kind == STRUCT:
            self.struct({}, level + 1)
        else:
            raise ThriftError(f"a field is of type {kind}")
