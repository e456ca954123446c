"""`/metrics`: the fleet for Prometheus. What there is: `table.py`; how it is written: `exposition.py`."""
