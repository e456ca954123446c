"""The Machine screen."""
