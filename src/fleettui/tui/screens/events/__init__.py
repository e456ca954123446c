"""The Events screen."""
