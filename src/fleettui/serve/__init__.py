"""The HTTP API: a front end like the dashboard, for scripts and agents. Needs `fleettui[serve]`."""
