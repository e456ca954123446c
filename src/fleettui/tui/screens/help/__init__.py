"""The Help screen."""
