"""Collecting: asking sources again and again for what is new, and knowing until when it is there.

A source (`source.py`) fetches files: a command's answer, what has grown in a folder, an address.
The collector (`collecting.py`) reads them as `faultline ingest` does and writes down, in the same
snapshot, for which stretch of time the source was asked: both are published, or neither is.
"""

from data.collect.collecting import Collected, Outcome, collect
from data.collect.config import default_sources, load_sources

__all__ = ["Collected", "Outcome", "collect", "default_sources", "load_sources"]
