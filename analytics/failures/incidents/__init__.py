"""Incidents: failures, events and outages that belong together, with ids that stay.

`incidents` groups them, `carry_over` keeps the ids of an earlier derivation, `summary` says one
in a sentence.
"""

from analytics.failures.incidents.grouping import incidents
from analytics.failures.incidents.identity import IncidentTables, carry_over
from analytics.failures.incidents.members import IncidentOptions
from analytics.failures.incidents.wording import summary

__all__ = ["IncidentOptions", "IncidentTables", "carry_over", "incidents", "summary"]
