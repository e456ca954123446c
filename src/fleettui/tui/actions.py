"""Every action of the dashboard, declared once: keys, footer, help and palette derive from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen

Place = Literal["everywhere", "fleet", "machine", "lines", "help"]
"""Where an action is bound: the app, one screen, or a list that has the focus."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the operator can do. Runs `action_<id>` of the app, screen or widget it is bound on."""

    id: str
    """Stable: the name in `keys:` of settings.yaml."""
    keys: str
    """Textual's key names, comma-separated."""
    label: str
    """The keys as an operator reads them."""
    title: str
    """One or two words, for footer and palette."""
    description: str
    """What it does, for help and palette."""
    places: tuple[Place, ...] = ("everywhere",)
    rank: int = 0
    """Order in the footer, 1 first; 0: not there. The last ones go first when the line is short."""
    is_command: bool = True
    """False: no entry in the palette (moving about)."""


ACTIONS: tuple[Action, ...] = (
    Action("quit", "q,ctrl+q", "q", "quit", "Leave fleettui", rank=1),
    Action("help", "question_mark,f1", "?", "help", "What can be done here, and with which key", rank=2),
    Action(
        "open",
        "enter",
        "Enter",
        "details",
        "Everything known of the machine under the cursor",
        ("fleet",),
        rank=3,
    ),
    Action("back", "escape,backspace", "Esc", "back", "Back to the fleet", ("machine",), rank=3),
    Action(
        "expand",
        "x",
        "x",
        "expand",
        "Show or hide the GPUs and models of the machine under the cursor",
        ("fleet",),
        rank=4,
    ),
    Action(
        "expand_all",
        "X",
        "X",
        "expand all",
        "Show or hide the GPUs and models of every machine",
        ("fleet",),
    ),
    Action("next_machine", "right_square_bracket,n", "]", "next", "The next machine", ("machine",), rank=4),
    Action(
        "previous_machine",
        "left_square_bracket,N",
        "[",
        "previous",
        "The machine before",
        ("machine",),
        rank=5,
    ),
    Action("refresh", "r", "r", "refresh", "Ask now, and try machines that failed again", rank=6),
    Action("pause", "p", "p", "pause", "Stop asking the machines, or go on", rank=7),
    Action("faster", "plus,equals_sign", "+", "faster", "Ask more often", rank=8),
    Action("slower", "minus", "-", "slower", "Ask less often", rank=9),
    Action("theme", "", "", "theme", "Choose the colours", ("everywhere",)),
    Action("cursor_down", "down,j", "↓ j", "down", "One line down", ("lines",), is_command=False),
    Action("cursor_up", "up,k", "↑ k", "up", "One line up", ("lines",), is_command=False),
    Action(
        "page_down", "pagedown,ctrl+f", "PgDn", "page down", "One page down", ("lines",), is_command=False
    ),
    Action("page_up", "pageup,ctrl+b", "PgUp", "page up", "One page up", ("lines",), is_command=False),
    Action("top", "g,home", "g", "top", "To the first line", ("lines",), is_command=False),
    Action("bottom", "G,end", "G", "bottom", "To the last line", ("lines",), is_command=False),
    Action("close", "escape,q,question_mark,enter", "Esc", "close", "Close this help", ("help",), rank=1),
)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


def bindings_for(place: Place) -> list[BindingType]:
    """Textual's bindings of all actions of a place."""
    return [
        Binding(action.keys, action.id, action.title, id=action.id, key_display=action.label)
        for action in ACTIONS
        if place in action.places and action.keys
    ]


@dataclass(frozen=True, slots=True)
class Offer:
    """An action that applies now, the node that runs it, and its key as bound now."""

    action: Action
    node: DOMNode
    label: str


def actions_now(screen: Screen[object]) -> list[Offer]:
    """The actions that apply on a screen now, in the order of their declaration."""
    offers: dict[str, Offer] = {}
    for node, binding, is_enabled, _ in screen.active_bindings.values():
        action = BY_ID.get(binding.id or "")
        if action is not None and is_enabled:
            label = binding.key_display or screen.app.get_key_display(binding)
            offers.setdefault(action.id, Offer(action, node, label))
    for action in ACTIONS:
        if not action.keys and "everywhere" in action.places:
            offers[action.id] = Offer(action, screen.app, "")
    return [offers[action.id] for action in ACTIONS if action.id in offers]
