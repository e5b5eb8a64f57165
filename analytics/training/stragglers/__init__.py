"""Straggler what-if of one traced job: how fast would it train if nothing were slow.

`trace` holds the operations, `graph` what waits for what, `simulation` the time of a step under any
choice of operations at their own or their ideal cost, `analysis` all results of a trace. Of the
modules that a trace passes none imports pandas or SciPy.
"""
