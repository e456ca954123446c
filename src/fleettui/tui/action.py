"""What an action of the dashboard is, and where one is bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal[
    "everywhere",
    "fleet",
    "models",
    "events",
    "route",
    "plan",
    "drain",
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
