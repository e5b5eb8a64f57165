"""Tabs of the page of runs."""
