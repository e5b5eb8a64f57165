"""The GPU-hour ledger and the job runs: `gpu_time` and `job_runs`, derived when they are asked for.

Not at every publish: on millions of attempts they cost seconds, which an hourly ingest need not
pay. `ledger_key` says what they rest on, so that they follow records, verdicts of people and
site.toml.
"""
