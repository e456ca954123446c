"""The work of draining: one worker for each machine that shall be empty, and the door to all of them."""
