"""Every action of the dashboard, declared once: keys, footer, help, palette and `:` derive from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

Place = Literal[
    "everywhere",
    "fleet",
    "models",
    "events",
    "machine",
    "timeline",
    "logs",
    "raw",
    "find",
    "lines",
    "prompt",
    "help",
    "menu",
    "pending",
    "pick",
]
"""Where an action is bound: the app, one screen, a list that has the focus, the line one types in."""


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
    """False: no entry in the palette, no name on the `:` line (moving about)."""
    command: str = ""
    """Its name on the `:` line; empty: the id with dashes."""
    takes: str = ""
    """What may follow that name, as help writes it: `EXPR`. `action_<id>` gets it as one text."""
    needs_machine: bool = False
    """Applies only while there is a machine under the cursor, or one that the screen is about."""
    changes: bool = False
    """Changes something: is not there with --readonly."""

    @property
    def name(self) -> str:
        """On the `:` line."""
        return self.command or self.id.replace("_", "-")


ACTIONS: tuple[Action, ...] = (
    Action("quit", "q,ctrl+q,ctrl+c,f10", "q", "quit", "Leave fleettui", rank=1),
    Action("help", "question_mark,h,f1", "?", "help", "What can be done here, and with which key", rank=2),
    Action(
        "clear_filter",
        "escape",
        "Esc",
        "show all",
        "Drop the filter",
        ("fleet", "models", "timeline"),
        rank=3,
    ),
    Action(
        "filter",
        "slash,f4",
        "/",
        "filter",
        "Show only what matches",
        ("fleet", "models", "timeline"),
        rank=3,
        takes="EXPR",
    ),
    Action(
        "sort", "o,f6", "o", "sort", "Choose what to sort by", ("fleet", "models"), rank=3, takes="COLUMN"
    ),
    Action(
        "open",
        "enter",
        "Enter",
        "details",
        "Everything known of the machine under the cursor",
        ("fleet", "models", "events"),
        rank=3,
        command="details",
    ),
    Action("back", "escape,backspace", "Esc", "back", "Back to the fleet", ("machine",), rank=3),
    Action(
        "expand",
        "x",
        "x",
        "expand",
        "Show or hide what lies below the line: GPUs and models of a machine, machines of a model",
        ("fleet", "models"),
        rank=4,
    ),
    Action(
        "expand_all", "X", "X", "expand all", "Show or hide what lies below every line", ("fleet", "models")
    ),
    Action(
        "tag",
        "space",
        "Space",
        "tag",
        "Tag the machine under the cursor, or take its tag away; actions for several act on tagged ones",
        ("fleet",),
        rank=4,
        needs_machine=True,
    ),
    Action("tag_all", "T", "T", "tag all", "Tag all machines shown, or take every tag away", ("fleet",)),
    Action(
        "sort_right",
        "full_stop,greater_than_sign",
        ".",
        "sort right",
        "Sort by the next column",
        ("fleet", "models"),
    ),
    Action(
        "sort_left",
        "comma,less_than_sign",
        ",",
        "sort left",
        "Sort by the column before",
        ("fleet", "models"),
    ),
    Action("reverse", "O,I", "O", "reverse", "Turn the order around", ("fleet", "models")),
    Action(
        "copy_address",
        "y",
        "y",
        "copy address",
        "Copy hostname:port of the machine's engine, as scripts use it; of all tagged machines",
        needs_machine=True,
        rank=13,
    ),
    Action(
        "next_machine",
        "right_square_bracket,n",
        "]",
        "next",
        "The next machine",
        ("machine",),
        rank=4,
        command="next",
    ),
    Action(
        "previous_machine",
        "left_square_bracket,N",
        "[",
        "previous",
        "The machine before",
        ("machine",),
        rank=5,
        command="previous",
    ),
    Action("next_tab", "tab,right", "Tab", "next tab", "The next tab of the machine", ("machine",), rank=6),
    Action("previous_tab", "shift+tab,left", "Shift+Tab", "previous tab", "The tab before", ("machine",)),
    Action(
        "logs",
        "l",
        "l",
        "logs",
        "The log of the machine, of the last 15 minutes",
        rank=12,
        needs_machine=True,
    ),
    Action(
        "maintenance",
        "m",
        "m",
        "maintenance",
        "Take the machine, or the tagged ones, out of routing, or back in",
        rank=5,
        takes="[on|off] [REASON] [until WHEN]",
        needs_machine=True,
        changes=True,
    ),
    Action(
        "maintenance_reason",
        "M",
        "M",
        "maintenance with reason",
        "The same with a reason and an end: fan swap until 2h",
        command="reason",
        needs_machine=True,
        changes=True,
    ),
    Action("undo", "u", "u", "undo", "Undo the last change of maintenance", changes=True),
    Action(
        "shell",
        "s",
        "s",
        "ssh",
        "A shell on the machine, on this terminal; leaving it comes back",
        rank=11,
        command="ssh",
        needs_machine=True,
        changes=True,
    ),
    Action(
        "pending",
        "a",
        "a",
        "pending",
        "Machines that wait for your decision: compare their host keys, approve or reject",
        takes="[MACHINE]",
    ),
    Action(
        "approve",
        "a",
        "a",
        "approve",
        "Approve the key on the screen: the machine is asked from then on",
        ("pending",),
        rank=1,
        changes=True,
    ),
    Action(
        "confirm",
        "enter",
        "Enter",
        "yes",
        "Do what the question says",
        ("pending",),
        rank=1,
        is_command=False,
        changes=True,
    ),
    Action(
        "reject",
        "n",
        "n",
        "not this one",
        "Reject the machine: nothing is asked of it until you approve it",
        ("pending",),
        rank=2,
        changes=True,
    ),
    Action(
        "copy_line",
        "y",
        "y",
        "copy the line",
        "Copy the line that prints the keys on the machine",
        ("pending",),
        rank=3,
    ),
    Action(
        "read_key",
        "r",
        "r",
        "read the key again",
        "Ask the machine for its host key now; one that had expired waits anew",
        ("pending",),
        rank=4,
        changes=True,
    ),
    Action(
        "refresh",
        "r,ctrl+r,f5",
        "r",
        "refresh",
        "Ask now, and try machines that failed again",
        ("everywhere", "logs"),
        rank=26,
    ),
    Action("pause", "p", "p", "pause", "Stop asking the machines, or go on", rank=27),
    Action("faster", "plus,equals_sign", "+", "faster", "Ask more often", rank=28),
    Action("slower", "minus", "-", "slower", "Ask less often", rank=29),
    Action("redraw", "ctrl+l", "Ctrl+L", "draw anew", "Draw the screen anew, if something else wrote on it"),
    Action("theme", "", "", "theme", "Choose the colours", ("everywhere",), takes="[NAME]"),
    Action(
        "command",
        "colon",
        ":",
        "command",
        "Type a command by its name",
        ("everywhere", "pending"),
        rank=25,
        is_command=False,
    ),
    Action("show_fleet", "1", "1", "fleet", "All machines", rank=20, command="fleet"),
    Action("show_models", "2", "2", "models", "Which model lies on which machine", rank=21, command="models"),
    Action("show_events", "5", "5", "events", "What happened in the fleet", rank=24, command="events"),
    Action("follow", "f", "f", "follow", "Stay on the newest, or hold still", ("timeline", "logs"), rank=5),
    Action("find", "slash,f3", "/", "find", "Find a text in these lines", ("find",), rank=4, takes="TEXT"),
    Action("find_next", "n", "n", "next match", "The next line that has it", ("find",), rank=4),
    Action("find_previous", "N", "N", "match before", "The line before that has it", ("find",)),
    Action("clear_find", "escape", "Esc", "end find", "Look for nothing any more", ("find",), rank=2),
    Action("copy_document", "y", "y", "copy JSON", "Copy the whole document", ("raw",), rank=5),
    Action("cursor_down", "down,j", "↓ j", "down", "One line down", ("lines",), is_command=False),
    Action("cursor_up", "up,k", "↑ k", "up", "One line up", ("lines",), is_command=False),
    Action(
        "page_down",
        "pagedown,ctrl+f,ctrl+d",
        "PgDn",
        "page down",
        "One page down",
        ("lines",),
        is_command=False,
    ),
    Action("page_up", "pageup,ctrl+b,ctrl+u", "PgUp", "page up", "One page up", ("lines",), is_command=False),
    Action("top", "g,home", "g", "top", "To the first line", ("lines",), is_command=False),
    Action("bottom", "G,end", "G", "bottom", "To the last line", ("lines",), is_command=False),
    Action(
        "close", "escape,q,question_mark,h,enter,ctrl+c", "Esc", "close", "Close this help", ("help",), rank=1
    ),
    Action(
        "choose",
        "enter,space",
        "Enter",
        "choose",
        "Take what is under the cursor",
        ("menu",),
        is_command=False,
    ),
    Action(
        "leave",
        "escape,q,ctrl+c",
        "Esc",
        "close",
        "Close without a choice",
        ("menu", "pending"),
        is_command=False,
    ),
    Action("cancel", "escape,ctrl+c", "Esc", "cancel", "Stop typing", ("prompt",), is_command=False),
    Action("complete", "tab", "Tab", "complete", "Complete what is typed", ("prompt",), is_command=False),
    Action("earlier", "up", "↑", "earlier", "What was typed before", ("prompt",), is_command=False),
    Action("later", "down", "↓", "later", "What was typed after that", ("prompt",), is_command=False),
    Action(
        "pick",
        "enter",
        "Enter",
        "pick",
        "Print the machine under the cursor and leave",
        ("pick",),
        rank=1,
        is_command=False,
    ),
    Action(
        "pick_leave",
        "escape,ctrl+c,ctrl+g,ctrl+q",
        "Esc",
        "leave",
        "Leave without a choice",
        ("pick",),
        rank=2,
        is_command=False,
    ),
    Action("pick_up", "up,ctrl+p", "↑", "up", "One line up", ("pick",), is_command=False),
    Action("pick_down", "down,ctrl+n", "↓", "down", "One line down", ("pick",), is_command=False),
    Action("pick_page_up", "pageup", "PgUp", "page up", "One page up", ("pick",), is_command=False),
    Action("pick_page_down", "pagedown", "PgDn", "page down", "One page down", ("pick",), is_command=False),
    Action(
        "pick_refresh",
        "ctrl+r",
        "Ctrl+R",
        "ask again",
        "Ask the machines now, and put the best on top",
        ("pick",),
        rank=3,
        is_command=False,
    ),
)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


def bindings_for(place: Place) -> list[BindingType]:
    """Textual's bindings of all actions of a place."""
    return [
        Binding(action.keys, action.id, action.title, id=action.id, key_display=action.label)
        for action in ACTIONS
        if place in action.places and action.keys
    ]
