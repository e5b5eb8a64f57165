"""Parts of the page Trend."""
