"""How an app on the terminal is dressed, as the settings say it."""

from __future__ import annotations

import time

from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders
from fleettui.config.paths import resolve_settings_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.tui.port import Look


def look_of(folders: Folders) -> Look:
    """The look of the settings. Raises CommandError where they name what does not exist."""
    from fleettui.tui.key_check import key_problems
    from fleettui.tui.look_check import look_problems
    from fleettui.tui.port import Look
    from fleettui.view.bars import Thresholds

    dress = folders.appearance
    look = Look(
        theme=dress.theme,
        glyphs="ascii" if dress.glyphs == "ascii" else "unicode",
        has_color=dress.has_color,
        keys=dress.keys,
        is_readonly=folders.is_readonly,
        columns=dress.columns,
        thresholds=Thresholds(*dress.limits),
        utc_offset_s=time.localtime().tm_gmtoff,
    )
    problems = [*look_problems(look), *(f"keys.{action}: {text}" for action, text in key_problems(look.keys))]
    if problems:
        raise CommandError(f"{resolve_settings_file()} cannot be followed", *problems)
    return look
