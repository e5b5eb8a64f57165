"""Hangs: which rank never joined which collective, by flight-recorder dumps of the ranks."""
