"""The `:` line: actions by their names, or by as much of a name as is unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from fleettui.tui.offers import Offer
from fleettui.tui.typed import note_line
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells
from fleettui.view.completion import shared_start


def command_question(
    offers: Sequence[Offer], history: list[str], run: Callable[[Offer, str], None]
) -> Question:
    """Asks for one of these actions; what is answered is added to the history and run."""
    line = CommandLine(offers)

    def answer(text: str) -> None:
        if not text.strip():
            return
        note_line(history, text)
        offer, rest = line.read(text)
        if offer is not None:
            run(offer, rest)

    return Question(
        ":",
        answer,
        placeholder="a command; Tab completes",
        hint_of=line.hint,
        is_wrong=lambda text: bool(text.strip()) and line.problem(text) != "",
        complete=line.complete,
        history=tuple(history),
    )


class CommandLine:
    """Reads what is typed behind the colon."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = {offer.action.name: offer for offer in offers if offer.action.is_command}

    def read(self, text: str) -> tuple[Offer | None, str]:
        """The action that is meant, None when none or several are; and what stands behind its name."""
        name, rest = _split(text)
        found = self._named(name)
        return (found[0] if len(found) == 1 else None), rest

    def problem(self, text: str) -> str:
        """Why the line cannot be run; empty when it can."""
        name, rest = _split(text)
        found = self._named(name)
        if not found:
            near = get_close_matches(name, list(self._offers), 1, 0.5)
            return f"no command {name!r} applies here" + (f"; did you mean {near[0]}?" if near else "")
        if len(found) > 1:
            return f"{name} can be {', '.join(offer.action.name for offer in found)}"
        if rest and not found[0].action.takes:
            return f"{found[0].action.name} takes nothing behind its name"
        return ""

    def hint(self, text: str) -> Cells:
        """What the command does, which ones can be meant, or what is wrong."""
        name, rest = _split(text)
        found = self._named(name) if name else list(self._offers.values())
        if len(found) == 1 and not self.problem(text):
            action = found[0].action
            takes = f" {action.takes}" if action.takes else ""
            return (Cell(f" {action.name}{takes}", "strong"), Cell(f"  {action.description}", "dim"))
        if name and (not found or rest):
            return (Cell(f" {self.problem(text)}", "warn"),)
        return (Cell(" " + "  ".join(sorted(offer.action.name for offer in found)), "dim"),)

    def complete(self, text: str) -> str:
        """The name as far as all that can be meant agree; with a blank when it is whole and takes more."""
        name, rest = _split(text)
        names = [key for key in self._offers if key.startswith(name)]
        if rest or not names:
            return text
        common = shared_start(names)
        is_whole = len(names) == 1 and bool(self._offers[common].action.takes)
        return common + (" " if is_whole else "")

    def _named(self, name: str) -> list[Offer]:
        """The action of that name, or all whose names begin with it."""
        exact = self._offers.get(name)
        if exact is not None:
            return [exact]
        return [offer for key, offer in self._offers.items() if name and key.startswith(name)]


def _split(text: str) -> tuple[str, str]:
    name, _, rest = text.strip().removeprefix(":").partition(" ")
    return name.lower(), rest.strip()
