"""A simulated fleet made of real SSH and HTTP servers, in a process of its own."""
