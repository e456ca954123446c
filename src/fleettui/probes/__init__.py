"""What we ask a machine and how its answer is read: bytes in, readings out, one file per source."""
