"""Tabs of the page Runs."""
