"""The command line, a module per command group; only output.py writes stdout, only diagnostics.py stderr."""
