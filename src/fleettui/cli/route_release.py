"""`fleettui route --release LEASE`."""

from __future__ import annotations

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import LOCK_WAIT_S, release_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fleettui.cli.folders import Folders


def release_command(folders: Folders, arguments: Namespace) -> int:
    """End a lease. One that is over already is exit 1: a script's clean-up may well ignore that."""
    if folders.is_readonly:
        raise CommandError("--release ends a lease, and this fleettui is --readonly")
    lease_id = arguments.release.strip().lower()
    try:
        with Store.open(folders.state_dir, busy_timeout_s=LOCK_WAIT_S) as store:
            is_released = release_lease(store, folders.machines_dir, lease_id)
    except StoreError as error:
        raise CommandError(f"the lease was not released: {error}", exit_code=EXIT_NEGATIVE) from None
    exit_code = EXIT_OK if is_released else EXIT_NEGATIVE
    if arguments.json or arguments.format == "json":
        released = lease_id if is_released else None
        output.write_document({"schema": 1, "released": released, "exit_code": exit_code})
    if not is_released and not arguments.quiet:
        diagnostics.say_error(
            "route",
            f"no lease {lease_id!r} holds on the machines of {folders.machines_dir}",
            "it was released before, its time is over, or a poll showed its effect; nothing is left to do",
        )
    return exit_code
