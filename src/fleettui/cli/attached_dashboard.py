"""The dashboard on what a running server tells."""

from __future__ import annotations

import dataclasses

from fleettui.cli.dashboard import check_terminal, log_to_file
from fleettui.cli.folders import Folders
from fleettui.cli.look import look_of
from fleettui.cli.serving import make_service, run_serving
from fleettui.config.machine_folder import load_machines
from fleettui.fleet.attached.fleet import AttachedFleet
from fleettui.fleet.ui_state import UiState
from fleettui.model.record import replace
from fleettui.model.server_place import ServerAccess

HIDDEN = frozenset({"pause", "faster", "slower", "refresh", "logs", "shell"})
"""The server asks the machines at its own pace, for all its readers; logs and shells go over SSH."""


def run_attached(folders: Folders, access: ServerAccess) -> int:
    """Run the dashboard until the operator quits."""
    from fleettui.tui.app import run_dashboard as run_app

    check_terminal()
    log_to_file(folders)
    look = dataclasses.replace(look_of(replace(folders, is_readonly=True)), hidden=HIDDEN)
    has_machines = bool(load_machines(folders.machines_dir).machines)
    service = AttachedFleet(
        access,
        (lambda: make_service(folders, "dashboard")) if has_machines else None,
        history_minutes=folders.appearance.history_minutes,
        ui_state=UiState(folders.state_dir, f"/via/{access.place.text}"),
    )
    return run_serving(run_app(service, look))
