"""An app in the operator's look: theme, colours, keys, signs; and what it says when it fails."""

from __future__ import annotations

import logging
import os
from typing import ClassVar

from rich.text import Text
from textual.command import CommandPalette

from fleettui.tui.ascii import ASCII_CLASS, ASCII_CSS, use_scrollbars
from fleettui.tui.port import Look
from fleettui.tui.style_cache import let_go_of_closed_widgets
from fleettui.tui.terminal import TerminalApp, TerminalDriver
from fleettui.tui.themes import ANSI, DARK, THEMES, tone_variables
from fleettui.tui.tones import TONE_CLASSES, TONES_CSS
from fleettui.view.text import clean

log = logging.getLogger(__name__)


class DressedApp(TerminalApp):
    """What every app of ours has."""

    TITLE = "fleettui"
    WHAT: ClassVar[str] = "the dashboard"
    """In the sentence that says it failed."""
    INSTEAD: ClassVar[str] = "`fleettui status` works without the dashboard"
    """What the operator can do then."""
    DRIVER: ClassVar[type[TerminalDriver]] = TerminalDriver
    COMPONENT_CLASSES: ClassVar[set[str]] = TONE_CLASSES  # once, not for each widget that paints cells
    DEFAULT_CSS = f"""
    DressedApp {{{ASCII_CSS}{TONES_CSS}
        & ToastRack {{ margin-bottom: 2; }}
    }}
    """

    def __init__(self, look: Look | None = None) -> None:
        self.look = look or Look()
        if not self.look.has_color:
            os.environ["NO_COLOR"] = "1"  # Textual's own switch: it drops colours from all it writes
        elif not os.environ.get("NO_COLOR"):  # set to nothing; Textual sees its name alone
            os.environ.pop("NO_COLOR", None)
        self.has_color = "NO_COLOR" not in os.environ
        """False: a theme would change nothing."""
        super().__init__(driver_class=self.DRIVER, ansi_color=None if self.has_color else True)
        let_go_of_closed_widgets()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = (self.look.theme or self.last_theme or DARK) if self.has_color else ANSI
        is_ascii = self.look.glyph_set.is_ascii
        self.set_class(is_ascii, ASCII_CLASS)
        use_scrollbars(is_ascii=is_ascii)
        self.animation_level = "none"  # each frame of an animation is a repaint, sent over the operator's SSH
        if self.look.keys:
            self.set_keymap(dict(self.look.keys))

    @property
    def last_theme(self) -> str:
        """What was chosen in an earlier run; empty: nothing."""
        return ""

    def action_command_palette(self) -> None:
        """Textual's palette, with words of ours in its line."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Find a command", id="--command-palette"))

    def get_css_variables(self) -> dict[str, str]:
        """Textual's variables and the colours of our tones."""
        variables = super().get_css_variables()
        self.theme_variables = {**tone_variables(variables), **variables}
        return self.theme_variables

    def _fatal_error(self) -> None:
        """An error of ours: the operator gets a sentence, the log gets the traceback."""
        error = self._exception
        log.critical("%s failed", self.WHAT, exc_info=error)
        said = clean(f"fleettui: {self.WHAT} failed: {type(error).__name__}: {error}")
        self.panic(Text(f"{said}\nfleettui.log in the state folder says where; {self.INSTEAD}."))
