"""Draining, decided: which copy goes where, and what comes next for each."""
