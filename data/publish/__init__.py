"""Building the next snapshot aside and publishing it atomically."""

from data.publish.writer import StoreWriter, clear, migrate, writer

__all__ = ["StoreWriter", "clear", "migrate", "writer"]
