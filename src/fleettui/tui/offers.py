"""Which declared actions apply now, and how one is run: for keys, footer, help, palette and the `:` line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any

from textual.dom import DOMNode
from textual.screen import Screen

from fleettui.tui.action import Action
from fleettui.tui.actions import ACTIONS, BY_ID


@dataclass(frozen=True, slots=True)
class Offer:
    """An action that applies now, the node that runs it, and its key as bound now."""

    action: Action
    node: DOMNode
    label: str

    async def run(self, text: str = "") -> None:
        """Run it, with what was typed behind its name where it takes something."""
        method = getattr(self.node, f"action_{self.action.id}")
        result = method(text) if text and self.action.takes else method()
        if isawaitable(result):
            await result


def is_offered(
    action_id: str, *, has_machine: bool, is_readonly: bool, hidden: frozenset[str] = frozenset()
) -> bool:
    """True where nothing forbids the action; True too for what is not ours to judge."""
    action = BY_ID.get(action_id)
    if action is None:
        return True
    if action_id in hidden:
        return False
    return not (action.changes and is_readonly) and (has_machine or not action.needs_machine)


def actions_now(screen: Screen[Any]) -> list[Offer]:
    """The actions that apply on a screen now, in the order of their declaration."""
    offers: dict[str, Offer] = {}
    bound = {
        (binding.id, binding.key): (node, binding)
        for node, binding, is_enabled, _ in screen.active_bindings.values()
        if is_enabled
    }
    for node, binding in bound.values():
        action = BY_ID.get(binding.id or "")
        if action is not None:
            label = binding.key_display
            if label is None or (binding.id, action.keys.split(",")[0]) not in bound:
                # Its first key is another action's here: a list in front of the screen has taken it.
                label = screen.app.get_key_display(replace(binding, key_display=None))
                label = label if label.isascii() else binding.key.capitalize()
            offers.setdefault(action.id, Offer(action, node, label))
    for action in ACTIONS:
        if action.keys or action.id in offers:
            continue
        node = screen.app if "everywhere" in action.places else screen
        method = getattr(node, f"action_{action.id}", None)
        if method is not None and node.check_action(action.id, ()):
            offers[action.id] = Offer(action, node, "")
    return [offers[action.id] for action in ACTIONS if action.id in offers]
