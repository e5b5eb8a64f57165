"""Pickles of plain values, read by an interpreter that knows no classes: nothing is executed.

Of the opcodes only those are known that make dicts, lists, tuples, texts, bytes, numbers, None.
What a pickle asks for is bounded by its own size, but for values that it names again and again:
whoever walks through them has to count.
"""

from __future__ import annotations

import pickletools
import struct
from typing import TYPE_CHECKING, Any, Final

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_DIGITS: Final = 20
"""Of a whole number in text, and twice the bytes of one in binary: 64 bits need no more."""
MOST_DEPTH: Final = 64
"""Containers that are open at once."""
_INT64: Final = 8
_NAMES: Final = {opcode.code.encode("latin-1")[0]: opcode.name for opcode in pickletools.opcodes}
_CLASSES: Final = frozenset({
    "GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD", "EXT1",
    "EXT2", "EXT4", "PERSID", "BINPERSID",
})  # fmt: skip
_SHOWN = 80


class _BrokenError(ValueError):
    """What is wrong in a pickle."""


class _Mark:
    """Where the elements of a container begin on the stack."""


_MARK: Final = _Mark()


def plain_pickle(data: bytes, name: str) -> object:
    """The value that a pickle holds.

    Parameters
    ----------
    data
        All of the file, of protocol 0 to 5.
    name
        What people call the file.

    Raises
    ------
    SourceError
        Where it names a class or function (which is told, and not looked up), is cut off or
        broken, or holds anything but plain values.

    Examples
    --------
    >>> import pickle
    >>> plain_pickle(pickle.dumps({"ranks": [0, 1]}), "dump")
    {'ranks': [0, 1]}
    >>> plain_pickle(pickle.dumps(print), "dump")
    Traceback (most recent call last):
    data.errors.SourceError: dump: is a pickle with the class or function builtins.print, which is
    not looked up: give a dump of plain values
    """
    reader = _Interpreter(data)
    try:
        return reader.value()
    except _BrokenError as error:
        raise SourceError(f"{name}: {error}") from None
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError, KeyError):
        raise SourceError(
            f"{name}: is a broken pickle, by byte {reader.at:,} of {len(data):,}: copy it again"
        ) from None


class _Interpreter:
    """Runs the opcodes of one pickle."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.n_open = 0

    def value(self) -> object:
        """The value before the opcode that ends the pickle."""
        data, size, known = self.data, len(self.data), _KNOWN
        while self.at < size:
            code = data[self.at]
            self.at += 1
            if code == _STOP:
                if len(self.stack) != 1:
                    raise _BrokenError("is a broken pickle: it ends within a value: copy it again")
                return self.stack.pop()
            run = known.get(code)
            if run is None:
                raise self._refused(code)
            run(self)
        raise _BrokenError(f"is a pickle that was cut off at byte {size:,}: copy it again")

    def _refused(self, code: int) -> _BrokenError:
        """What to say of an opcode that is not run."""
        named = _NAMES.get(code, f"byte {code}")
        if named not in _CLASSES:
            return _BrokenError(
                f"is a pickle with {named}, or none at all: give a dump of plain values"
            )
        what = self._global(named)
        return _BrokenError(
            f"is a pickle with the class or function {what}, which is not looked up: give a dump "
            "of plain values"
        )

    def _global(self, named: str) -> str:
        """The class by its name, as far as the pickle states it here."""
        if named in ("GLOBAL", "INST"):
            words = [self.line(), self.line()]
        elif named == "STACK_GLOBAL":
            words = [word for word in self.stack[-2:] if isinstance(word, str)]
        else:
            return f"of opcode {named}"
        return ascii(".".join(words)[:_SHOWN])[1:-1]

    def take(self, size: int) -> bytes:
        """The next bytes; a pickle that states more than it has is cut off."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise _BrokenError(
                f"is a pickle that was cut off at byte {len(self.data):,}: copy it again"
            )
        found = self.data[self.at : end]
        self.at = end
        return found

    def line(self) -> str:
        """The text up to the end of the line."""
        return self.raw_line().decode("utf-8", "replace")

    def raw_line(self) -> bytes:
        """The bytes up to the end of the line."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise _BrokenError(
                f"is a pickle that was cut off at byte {len(self.data):,}: copy it again"
            )
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def number(self, kind: struct.Struct) -> Any:
        """A number of fixed width."""
        return kind.unpack(self.take(kind.size))[0]

    def mark(self) -> None:
        """Begins the elements of a container."""
        self.n_open += 1
        if self.n_open > MOST_DEPTH:
            raise _BrokenError(
                f"is a pickle with more than {MOST_DEPTH} containers open: give a flight recorder's"
            )
        self.stack.append(_MARK)

    def elements(self) -> list[Any]:
        """What lies above the last mark, which goes."""
        stack = self.stack
        place = len(stack) - 1
        while stack[place] is not _MARK:  # below the first value this is an IndexError
            place -= 1
            if place < 0:
                raise IndexError
        found = stack[place + 1 :]
        del stack[place:]
        self.n_open -= 1
        return found

    def set_items(self, target: Any, items: list[Any]) -> None:
        """Puts keys and values into a dict; keys are texts or small numbers."""
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(key, bytes):
                key = key.decode()
            if not isinstance(key, str) and not (isinstance(key, int) and abs(key) < 1 << 31):
                raise TypeError
            target[key] = value

    def whole(self, text: str) -> int | bool:
        """A whole number in text, or a truth value as protocol 0 writes it."""
        if text in ("00", "01"):
            return text == "01"
        text = text.removesuffix("L")
        if len(text) > MOST_DIGITS:
            raise _BrokenError("is a pickle with a number of more than 64 bits: it is no dump")
        return int(text)

    def long(self, size: int) -> int:
        """A whole number of so many bytes."""
        if size > 2 * _INT64:
            raise _BrokenError("is a pickle with a number of more than 64 bits: it is no dump")
        return int.from_bytes(self.take(size), "little", signed=True)


_STOP = ord(".")
_U1, _U2, _U4, _U8 = (struct.Struct(kind) for kind in ("<B", "<H", "<I", "<Q"))
_I4, _F8, _F8_BIG = (struct.Struct(kind) for kind in ("<i", "<d", ">d"))
_PLAIN: dict[str, Callable[[_Interpreter], object]] = {
    "NONE": lambda one: None,
    "NEWTRUE": lambda one: True,
    "NEWFALSE": lambda one: False,
    "EMPTY_DICT": lambda one: {},
    "EMPTY_LIST": lambda one: [],
    "EMPTY_TUPLE": lambda one: (),
    "BININT": lambda one: one.number(_I4),
    "BININT1": lambda one: one.number(_U1),
    "BININT2": lambda one: one.number(_U2),
    "LONG1": lambda one: one.long(one.number(_U1)),
    "LONG4": lambda one: one.long(one.number(_I4)),
    "INT": lambda one: one.whole(one.line()),
    "LONG": lambda one: one.whole(one.line()),
    "FLOAT": lambda one: float(one.line()),
    "BINFLOAT": lambda one: one.number(_F8_BIG),
    "STRING": lambda one: one.line()[1:-1],
    "UNICODE": lambda one: one.raw_line().decode("raw-unicode-escape"),
    "BINUNICODE": lambda one: one.take(one.number(_U4)).decode("utf-8", "replace"),
    "SHORT_BINUNICODE": lambda one: one.take(one.number(_U1)).decode("utf-8", "replace"),
    "BINUNICODE8": lambda one: one.take(one.number(_U8)).decode("utf-8", "replace"),
    "BINSTRING": lambda one: one.take(one.number(_I4)).decode("utf-8", "replace"),
    "SHORT_BINSTRING": lambda one: one.take(one.number(_U1)).decode("utf-8", "replace"),
    "BINBYTES": lambda one: one.take(one.number(_U4)),
    "SHORT_BINBYTES": lambda one: one.take(one.number(_U1)),
    "BINBYTES8": lambda one: one.take(one.number(_U8)),
    "LIST": lambda one: one.elements(),
    "TUPLE": lambda one: tuple(one.elements()),
    "TUPLE1": lambda one: (one.stack.pop(),),
    "TUPLE2": lambda one: (one.stack.pop(-2), one.stack.pop()),
    "TUPLE3": lambda one: (one.stack.pop(-3), one.stack.pop(-2), one.stack.pop()),
    "GET": lambda one: one.memo[int(one.line())],
    "BINGET": lambda one: one.memo[one.number(_U1)],
    "LONG_BINGET": lambda one: one.memo[one.number(_U4)],
    "DUP": lambda one: one.stack[-1],
}
"""Opcodes that put a value on the stack."""


def _dict(one: _Interpreter) -> None:
    items, found = one.elements(), dict[Any, Any]()
    one.set_items(found, items)
    one.stack.append(found)


def _append(one: _Interpreter, values: list[Any]) -> None:
    if not isinstance(one.stack[-1], list):
        raise TypeError
    one.stack[-1].extend(values)


def _set_items(one: _Interpreter) -> None:
    items = one.elements()
    one.set_items(one.stack[-1], items)


def _set_item(one: _Interpreter) -> None:
    value, key = one.stack.pop(), one.stack.pop()
    one.set_items(one.stack[-1], [key, value])


def _remember(one: _Interpreter, place: int) -> None:
    one.memo[place] = one.stack[-1]


def _pop(one: _Interpreter) -> None:
    if one.stack.pop() is _MARK:
        one.n_open -= 1


def _protocol(one: _Interpreter) -> None:
    if one.number(_U1) > 5:
        raise ValueError


_OTHERS: dict[str, Callable[[_Interpreter], object]] = {
    "MARK": _Interpreter.mark,
    "PROTO": _protocol,
    "FRAME": lambda one: one.take(8),
    "DICT": _dict,
    "APPEND": lambda one: _append(one, [one.stack.pop()]),
    "APPENDS": lambda one: _append(one, one.elements()),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "PUT": lambda one: _remember(one, one.whole(one.line())),
    "BINPUT": lambda one: _remember(one, one.number(_U1)),
    "LONG_BINPUT": lambda one: _remember(one, one.number(_U4)),
    "MEMOIZE": lambda one: _remember(one, len(one.memo)),
    "POP": _pop,
    "POP_MARK": _Interpreter.elements,
}
"""Opcodes that do something else."""


def _pushing(make: Callable[[_Interpreter], object]) -> Callable[[_Interpreter], object]:
    def push(one: _Interpreter) -> None:
        found = make(one)
        if found is _MARK:
            raise TypeError
        one.stack.append(found)

    return push


_CODES = {name: code for code, name in _NAMES.items()}
_KNOWN: dict[int, Callable[[_Interpreter], object]] = {
    **{_CODES[name]: _pushing(make) for name, make in _PLAIN.items()},
    **{_CODES[name]: run for name, run in _OTHERS.items()},
}
