"""The dashboard: screens and widgets over Textual. Text, tones and columns come from `view`."""
