"""Building the next snapshot aside and publishing it atomically."""

from data.publish.writer import StoreWriter, migrate, writer

__all__ = ["StoreWriter", "migrate", "writer"]
