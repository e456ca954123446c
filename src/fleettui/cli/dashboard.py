"""`fleettui`: the dashboard."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
from argparse import Namespace
from pathlib import Path

from fleettui.cli.folders import Folders, resolve_folders

LOG_BYTES = 1 << 20


def dashboard_command(arguments: Namespace) -> int:
    """Open the dashboard on the folder's machines."""
    return run_dashboard(resolve_folders(arguments))


def run_dashboard(folders: Folders) -> int:
    """Run the dashboard until the operator quits."""
    from fleettui.cli.serving import make_service
    from fleettui.tui.app import run_dashboard as run_app
    from fleettui.tui.port import Look

    _log_to_file(folders)
    dress = folders.appearance
    look = Look(
        theme=dress.theme,
        glyphs="ascii" if dress.glyphs == "ascii" else "unicode",
        has_color=dress.has_color,
        keys=dress.keys,
    )
    return asyncio.run(run_app(make_service(folders, "dashboard"), look))


def _log_to_file(folders: Folders) -> None:
    """The screen is drawn on stderr, so nothing may be logged there: a file in the state folder takes it."""
    folder = Path(folders.state_dir)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = logging.handlers.RotatingFileHandler(
        folder / "fleettui.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
