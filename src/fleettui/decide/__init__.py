"""Pure decisions over snapshots: health, names, routing."""
