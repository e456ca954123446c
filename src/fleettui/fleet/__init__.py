"""The running core: one poller per machine, the snapshot bus, and FleetService, the only door for front ends."""
