"""What a language model of the site makes of a log from which the rules say nothing."""
