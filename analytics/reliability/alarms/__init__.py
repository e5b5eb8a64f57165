"""Sequential tests of figures, with a bound on how often chance makes them alarm."""
