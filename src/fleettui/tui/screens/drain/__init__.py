"""The Drain screen."""
