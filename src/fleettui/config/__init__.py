"""What the operator writes (machine files, settings) and where it lies."""
