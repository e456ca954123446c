"""Machines that the operator tagged for what is done to several at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Tags:
    """Names, which stay until they are taken away or the machine is gone."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def toggle(self, name: str) -> None:
        """Tag one machine, or take its tag away."""
        self.names ^= {name}

    def toggle_all(self, shown: Iterable[str]) -> None:
        """Tag these too; when all of them are tagged take every tag away."""
        names = frozenset(shown)
        self.names = frozenset() if names <= self.names else self.names | names

    def drop(self) -> None:
        """Nothing is tagged any more."""
        self.names = frozenset()

    def keep_only(self, declared: Iterable[str]) -> None:
        """Machines that are gone lose their tag."""
        if self.names:
            self.names &= frozenset(declared)

    def in_order(self, declared: Sequence[str]) -> tuple[str, ...]:
        """The tagged ones in the order of the fleet."""
        return tuple(name for name in declared if name in self.names)
