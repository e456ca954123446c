"""The running core: a poller per machine, the snapshot bus; FleetService is the only door for front ends."""
