"""Which machines show their GPUs and models: all while they fit the screen, else what the operator opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Expansion:
    """What is open. The operator's choice beats the rule; the rule is settled anew only when the fleet or the
    screen takes another shape, so that nothing folds or unfolds by itself while one reads."""

    def __init__(self) -> None:
        self._chosen: dict[str, bool] = {}
        self._everyone: bool | None = None
        self._fits = False
        self._shape: object = None

    @property
    def everyone(self) -> bool | None:
        """The operator opened or closed all; None: the rule holds."""
        return self._everyone

    def choices(self, names: Iterable[str]) -> dict[str, bool]:
        """What the operator chose for single ones of these machines."""
        return {name: self._chosen[name] for name in names if name in self._chosen}

    def restore(self, everyone: bool | None, chosen: Mapping[str, bool]) -> None:
        """As it was left in another run."""
        self._everyone = everyone
        self._chosen = dict(chosen)

    def is_open(self, name: str) -> bool:
        """True when the machine shows more than its own line."""
        default = self._fits if self._everyone is None else self._everyone
        return self._chosen.get(name, default)

    def is_settled(self, shape: object) -> bool:
        """True while the rule was settled for that shape of fleet and screen."""
        return shape == self._shape

    def settle(self, shape: object, fits: bool) -> None:
        """Everything open fits the screen, or does not."""
        self._shape = shape
        self._fits = fits

    def toggle(self, name: str) -> None:
        """Open or close one machine."""
        self._chosen[name] = not self.is_open(name)

    def toggle_all(self, names: Iterable[str]) -> None:
        """Close all when all are open, else open all."""
        self._everyone = not all(self.is_open(name) for name in names)
        self._chosen.clear()
