"""Tabs of the page Diagnose."""
