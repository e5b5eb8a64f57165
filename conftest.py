"""Before any test is imported: how Python and the libraries of the tests start."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Python keeps what it compiled, whatever the shell says, as in `make test`: each run, and each
Python that a test starts, would compile hundreds of files again."""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""As in the command line: threads that wait by spinning took an eighth of the time of analyses."""
os.environ.setdefault("OMP_NUM_THREADS", "1")
"""The same for scikit-learn and Arrow: another twentieth."""
