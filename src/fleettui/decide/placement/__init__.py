"""Which copy of which role belongs on which GPU, and why. Rules: docs/placement.md."""
