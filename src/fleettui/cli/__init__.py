"""The command line: one module per command group; only output.py writes stdout, only diagnostics.py stderr."""
