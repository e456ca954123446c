"""`fleettui`: the dashboard."""

from __future__ import annotations

import logging
import logging.handlers
import os
from argparse import Namespace
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from fleettui.cli import diagnostics
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.look import look_of
from fleettui.model.drain import WORKING
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.text import clean

LOG_BYTES = 1 << 20


class _OwnFile(logging.handlers.RotatingFileHandler):
    """For the operator alone, whatever the umask: names and addresses of machines stand there."""

    def _open(self) -> TextIOWrapper:
        file = open(self.baseFilename, self.mode, encoding=self.encoding, opener=_open_own)  # noqa: SIM115
        return cast("TextIOWrapper", file)


def _open_own(path: str, flags: int) -> int:
    fd = os.open(path, flags, 0o600)
    os.fchmod(fd, 0o600)  # one of an older version
    return fd


def dashboard_command(arguments: Namespace) -> int:
    """Open the dashboard on the folder's machines."""
    return run_dashboard(resolve_folders(arguments))


def run_dashboard(folders: Folders) -> int:
    """Run the dashboard until the operator quits."""
    if folders.server is not None:
        from fleettui.cli.attached_dashboard import run_attached

        return run_attached(folders, folders.server)
    from fleettui.cli.serving import make_service, run_serving
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.fleet.route_desk import RouteDesk
    from fleettui.tui.app import run_dashboard as run_app

    check_terminal()
    log_to_file(folders)
    look = look_of(folders)
    service = make_service(folders, "dashboard", folders.appearance.history_minutes)
    service.routing = RouteDesk(
        lambda: service.snapshot, folders.state_dir, folders.machines_dir, service=service
    )
    if not folders.is_readonly:
        service.drains = DrainDesk(service, folders.state_dir, folders.machines_dir)
    code = run_serving(run_app(service, look))
    if service.drains is not None:
        tell_left_drains(service.snapshot)
    return code


def tell_left_drains(fleet: FleetSnapshot) -> None:
    """Whoever leaves knows what is still to be done, and by whom."""
    left = [
        clean(item.name) for item in fleet.machines if item.drain is not None and item.drain.state in WORKING
    ]
    if left:
        diagnostics.say(
            f"not empty yet: {', '.join(left)}; it takes no requests, nothing is lost"
            if len(left) == 1
            else f"not empty yet: {', '.join(left)}; they take no requests, nothing is lost",
            f"the next dashboard goes on, or: fleettui drain status {left[0]} --follow",
        )


def check_terminal() -> None:
    """The screen goes to stderr, keys come from stdin. Raises CommandError where one is no terminal."""
    name = diagnostics.missing_terminal()
    if name is not None:
        use = "where the dashboard is drawn" if name == "stderr" else "for the keys of the dashboard"
        raise CommandError(
            f"{name}, {use}, is no terminal", "run it without a redirection; as text: fleettui status"
        )


def log_to_file(folders: Folders) -> None:
    """The screen is drawn on stderr, so nothing may be logged there: a file in the state folder takes it."""
    folder = Path(folders.state_dir)
    logging.raiseExceptions = False  # a full disk: its traceback would go to the screen
    handler: logging.Handler = _OwnFile(
        folder / "fleettui.log", maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # no reason to show no dashboard; a notice says that nothing is stored
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
