"""Tabs of the page Planner."""
