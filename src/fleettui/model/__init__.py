"""What things are: frozen dataclasses, standard library only; no clock, no IO."""
