"""Alerts: rules that find what somebody should know of, their life, and how they are told."""
