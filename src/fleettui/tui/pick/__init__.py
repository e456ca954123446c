"""The picker of `fleettui pick`: a small app of its own."""
