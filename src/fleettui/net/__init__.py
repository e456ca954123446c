"""The client side of the wire: SSH connections, host keys, HTTP through SSH, the local machine.

asyncssh (0.35 s) and httpx are imported on first use, never with this package.
"""
