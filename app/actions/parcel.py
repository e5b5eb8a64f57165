"""What a process of an upload hands back, as JSON: dataclasses named ahead, arrays, frames."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from data.sandbox import wire

if TYPE_CHECKING:
    import pandas as pd


class Parcel:
    """Packs and unpacks values of these dataclasses, and of what `wire` knows; nothing else.

    No value can name what is to be made of it: the reader of a parcel knows its kinds.
    """

    def __init__(self, *kinds: type) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}

    def packed(self, value: Any) -> Any:
        """A value as JSON can hold it; a kind that was not named is a KeyError."""
        name = type(value).__name__
        if name in self._kinds:
            return {"of": [name, [self.packed(getattr(value, f.name)) for f in fields(value)]]}
        if isinstance(value, np.ndarray):
            content = base64.b64encode(np.ascontiguousarray(value).data).decode()
            return {"array": [value.dtype.str, list(value.shape), content]}
        if isinstance(value, np.generic):
            return value.item()
        if name == "DataFrame":
            return {"frame": base64.b64encode(_arrow(value)).decode()}
        if isinstance(value, list | tuple):
            held = [self.packed(each) for each in value]
            return {"tuple": held} if isinstance(value, tuple) else held
        if isinstance(value, dict):
            return {"dict": [[self.packed(k), self.packed(v)] for k, v in value.items()]}
        return wire.encode(value)

    def restore(self, tagged: dict[str, Any]) -> Any:
        """A value from its object of one key, as `json.loads` meets it."""
        kind = next(iter(tagged), "")
        if kind == "of":
            name, values = tagged[kind]
            made = self._kinds[name]
            return made(**dict(zip((f.name for f in fields(made)), values, strict=True)))
        if kind == "array":
            dtype, shape, content = tagged[kind]
            return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape)
        if kind == "frame":
            return _frame(base64.b64decode(tagged[kind]))
        return wire.restore(tagged)


def _arrow(frame: pd.DataFrame) -> bytes:
    """A frame as a stream of Arrow; a column of several kinds as texts."""
    import pyarrow as pa

    columns = {}
    for name, column in frame.items():
        try:
            columns[str(name)] = pa.Array.from_pandas(column)
        except pa.ArrowException:
            columns[str(name)] = pa.Array.from_pandas(column.map(str))
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _frame(content: bytes) -> pd.DataFrame:
    """The frame of a stream of Arrow."""
    import pyarrow as pa

    with pa.ipc.open_stream(content) as stream:
        frame: pd.DataFrame = stream.read_pandas()
    return frame
