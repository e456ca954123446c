"""Pure view models for every front end: snapshots become cells, rows, lines and documents."""
