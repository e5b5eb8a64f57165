"""Raw records of any size to what Faultline reads, by DuckDB on one machine or by Spark.

ibis and pyspark are imported by this package alone, and by nothing else of the product; what other
commands spread over Spark goes through `spark_tasks`.
"""
