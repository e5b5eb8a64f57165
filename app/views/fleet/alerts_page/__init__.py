"""What belongs to the page Alerts alone."""
