"""Tabs of the page MTTF."""
