"""One folder for each screen. Screens do not import each other."""
