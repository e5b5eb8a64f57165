"""Raw records of any size to what Faultline reads, by an engine: DuckDB on one machine.

ibis is imported by this package alone, and by nothing else of the product.
"""
