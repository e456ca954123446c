"""The Pending panel: what the operator decides about host keys."""
