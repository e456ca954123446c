"""`fleettui`: the dashboard."""

from __future__ import annotations

import logging
import logging.handlers
import time
from argparse import Namespace
from pathlib import Path

from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.config.paths import resolve_settings_file

LOG_BYTES = 1 << 20


def dashboard_command(arguments: Namespace) -> int:
    """Open the dashboard on the folder's machines."""
    return run_dashboard(resolve_folders(arguments))


def run_dashboard(folders: Folders) -> int:
    """Run the dashboard until the operator quits."""
    from fleettui.cli.serving import make_service, run_serving
    from fleettui.tui.app import run_dashboard as run_app
    from fleettui.tui.key_check import key_problems
    from fleettui.tui.look_check import look_problems
    from fleettui.tui.port import Look
    from fleettui.view.bars import Thresholds

    log_to_file(folders)
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
    return run_serving(run_app(make_service(folders, "dashboard", dress.history_minutes), look))


def log_to_file(folders: Folders) -> None:
    """The screen is drawn on stderr, so nothing may be logged there: a file in the state folder takes it."""
    folder = Path(folders.state_dir)
    logging.raiseExceptions = False  # a full disk: its traceback would go to the screen
    handler: logging.Handler = logging.handlers.RotatingFileHandler(
        folder / "fleettui.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        handler = (
            logging.NullHandler()
        )  # no reason to show no dashboard; a notice says that nothing is stored
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
