"""Which modules of libraries a command loads: `python -m tests.benchmarks.loaded FILE COMMAND ...`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from app.cli import main

LIBRARIES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def of_libraries() -> list[str]:
    """Names of the modules that are loaded and no part of Python or of this project, in order."""
    specs = [(name, getattr(module, "__spec__", None)) for name, module in [*sys.modules.items()]]
    return [
        name
        for name, spec in specs
        if spec is not None and spec.name == name  # else another module's second name
        if (spec.origin or "").startswith(LIBRARIES) and not name.startswith("__editable__")
    ]


if __name__ == "__main__":
    _, written, *arguments = sys.argv
    code = main(arguments)
    Path(written).write_text("\n".join(of_libraries()), encoding="utf-8")
    sys.exit(code)
