"""A classifier of texts that a site trains on its own labels, and that says when it is unsure."""
