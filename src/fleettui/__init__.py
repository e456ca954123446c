"""fleettui: one terminal for a fleet of GPU machines that serve language models."""

__version__ = "0.1.0"
