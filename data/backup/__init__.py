"""Copies of a whole store that hold: made while others write, checked before they are restored."""

from data.backup.making import backup
from data.backup.manifest import NAME as MANIFEST
from data.backup.manifest import Manifest, checked
from data.backup.restoring import restore

__all__ = ["MANIFEST", "Manifest", "backup", "checked", "restore"]
