"""The palette's commands, each with its key at the right of its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from fleettui.tui.offers import actions_now
from fleettui.view.text import cell_width

if TYPE_CHECKING:
    from textual.app import SystemCommand

_EDGES = 6
"""Columns of the palette that are not for text: padding and scrollbar."""


class PaletteCommands(Provider):
    """In place of Textual's own provider, which shows no keys."""

    async def discover(self) -> Hits:
        """All of them, by name."""
        for command, label in sorted(self._commands(), key=lambda pair: pair[0].title):
            shown = self._with_key(Text(command.title), label)
            yield DiscoveryHit(shown, command.callback, command.title, command.help)

    async def search(self, query: str) -> Hits:
        """Those whose name has the letters."""
        matcher = self.matcher(query)
        for command, label in self._commands():
            if (score := matcher.match(command.title)) > 0:
                found = matcher.highlight(command.title)
                name = Text(found.plain)
                for start, end, style in found.spans:
                    name.stylize(style if isinstance(style, str) else style.rich_style, start, end)
                yield Hit(score, self._with_key(name, label), command.callback, command.title, command.help)

    def _commands(self) -> Iterator[tuple[SystemCommand, str]]:
        labels = {offer.action.title.capitalize(): offer.label for offer in actions_now(self.screen)}
        for command in self.app.get_system_commands(self.screen):
            yield command, labels.get(command.title, "")

    def _with_key(self, name: Text, label: str) -> Text:
        room = self.app.size.width - _EDGES - cell_width(name.plain) - cell_width(label)
        if not label or room < 1:
            return name
        return Text.assemble(name, " " * room, (label, "dim"))
