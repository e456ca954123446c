"""The Plan screen."""
