"""Engines: one file each; here the registry of what is asked of which."""

REMOTE_PATHS = ("/api/ps", "/api/tags", "/api/version")
