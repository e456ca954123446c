"""A menu to choose one thing from."""
