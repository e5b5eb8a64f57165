"""Building the next snapshot aside and publishing it atomically; going back, and forgetting."""

from data.publish.forget import forget, limits
from data.publish.rollback import Plan, plan, roll_back, undoable
from data.publish.writer import StoreWriter, clear, migrate, writer

__all__ = [
    "Plan",
    "StoreWriter",
    "clear",
    "forget",
    "limits",
    "migrate",
    "plan",
    "roll_back",
    "undoable",
    "writer",
]
