"""What outlives the process: one SQLite file in the state folder."""
