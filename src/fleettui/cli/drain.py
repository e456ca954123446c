"""`fleettui drain start|status|cancel` and `fleettui undrain`; each verb pays only for itself."""

from __future__ import annotations

from argparse import Namespace


def drain_command(arguments: Namespace) -> int:
    """Dispatch on the verb."""
    if arguments.command == "undrain":
        from fleettui.cli.drain_ending import undrain_command

        return undrain_command(arguments)
    if arguments.verb == "cancel":
        from fleettui.cli.drain_ending import cancel_command

        return cancel_command(arguments)
    if arguments.verb == "status":
        from fleettui.cli.drain_status import status_command

        return status_command(arguments)
    from fleettui.cli.drain_start import start_command

    return start_command(arguments)
