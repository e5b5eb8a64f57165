"""What should be done now: a module of rows a kind, and the list of them all."""
