"""The Route screen."""
