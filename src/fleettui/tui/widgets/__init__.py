"""Widgets of our own: lines painted through Textual's Line API."""
