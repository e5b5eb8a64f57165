"""Tabs of the page Lemons."""
