"""`fleettui route MODEL`, also spelled `fleettui --route MODEL`: answered here, or by a running server."""

from __future__ import annotations

import time

from fleettui.cli.errors import CommandError
from fleettui.cli.folders import resolve_folders
from fleettui.model.sizes import parse_vram_mib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


def route_command(arguments: Namespace) -> int:
    """Either way loads only what it needs."""
    started_at = time.time()
    check_usage(arguments)
    folders = resolve_folders(arguments)
    if folders.server is not None:
        from fleettui.cli.attached_route import route_there

        return route_there(arguments, folders.server, started_at, is_readonly=folders.is_readonly)
    from fleettui.cli.route import route_here

    return route_here(arguments, folders, started_at)


def check_usage(arguments: Namespace) -> None:
    """Raises CommandError for options that do not go together."""
    see = "see: fleettui route --help"
    if arguments.release is not None and arguments.model is not None:
        raise CommandError("--release ends a lease and routes nothing: leave out MODEL", see)
    if arguments.release is None and arguments.model is None:
        raise CommandError("the following arguments are required: MODEL", see)
    if arguments.no_lease and arguments.hold is not None:
        raise CommandError("--hold says how long a lease holds, and --no-lease takes none", see)
    if arguments.release is None and not arguments.model.strip():
        raise CommandError("the model's name is empty", see)


def read_min_free(arguments: Namespace) -> int:
    """`--min-free-vram` in MiB. Raises CommandError."""
    try:
        return 0 if arguments.min_free_vram is None else parse_vram_mib(arguments.min_free_vram)
    except ValueError as error:
        raise CommandError(f"--min-free-vram: {error}", "write for example 4, 4GiB or 4000MiB") from None
