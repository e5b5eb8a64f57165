"""The files of a store, copied while others write to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from data.access import access_of, make_file, make_folder
from data.current import copy_hashed, copy_published, sync
from data.errors import StoreError
from data.inside import Inside, LeftOutError
from data.metrics_files import METRICS
from data.models import MODELS
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from data.current import Current
    from data.inside import Held

STEP = 32 << 20
"""Bytes after which progress is told again."""


class Progress:
    """Tells how much of long work is done."""

    def __init__(self, told: Callable[[str], None], what: str, n_bytes: int) -> None:
        self._told = told
        self._what = what
        self._total = n_bytes
        self._done = 0

    def __call__(self, n_bytes: int) -> None:
        """So many bytes more are done."""
        before, self._done = self._done, self._done + n_bytes
        if before // STEP != self._done // STEP:
            self._told(f"{self._what} {self._done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB")


def copy_store(
    root: Path,
    current: Current,
    folder: Path,
    *,
    metrics: bool,
    told: Callable[[str], None] = lambda message: None,
) -> None:
    """Copies a store as it was when `current` was published, with what people have said by now.

    The snapshot comes before what people said, which therefore is never older than it. CURRENT is
    left to the caller; `metrics` says whether the files below metrics/ come too.

    Raises
    ------
    StoreError
        Where snapshot or state.sqlite are damaged.
    OSError
        Where a file is gone or cannot be read or written.
    """
    files = list(_beside_the_snapshot(root, metrics=metrics))
    n_bytes = sum((root / name).lstat().st_size for name in (current.file, *files))
    progress = Progress(told, "copied", n_bytes)
    access = access_of(root)
    copy_published(root, current, folder / current.file, progress)
    sync(folder / current.file)
    for name in files:
        target = folder / name
        make_folder(target.parent, access)
        make_file(target, access)
        with _held(root, name) as held:
            copy_hashed(held.path, target, progress)
        sync(target)
    if State(root).copy_to(folder, access):
        State(folder).refuse_another(current.store_id)
        sync(folder / "state.sqlite")


def _held(root: Path, name: str) -> Held:
    """A file of the store. The folders of models and metrics may lie elsewhere by a link; what
    lies in them stays there.
    """
    top = name.partition("/")[0]
    try:
        return Inside(root / top if top != name else Path("/")).take(root / name)
    except LeftOutError:
        raise StoreError(
            f"{root / name}: is no file of the store, or leads out of it: remove it, or put the "
            "file in its place"
        ) from None


def _beside_the_snapshot(root: Path, *, metrics: bool) -> Iterator[str]:
    """Files of a store beside the snapshot and what people said; those half written left out."""
    if (root / "site.toml").is_file():
        yield "site.toml"
    # The pointer to the site's model comes first: the model that it names is there by then.
    folders = [MODELS, METRICS] if metrics else [MODELS]
    for folder in folders:
        paths = sorted((root / folder).rglob("*"), key=lambda path: (path.name != "CURRENT", path))
        for path in paths:
            if not path.is_dir() and not path.name.endswith((".new", ".part")):
                yield str(path.relative_to(root))
