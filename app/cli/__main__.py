"""`python -m app.cli` is `faultline`."""

from app.cli import program

program()
