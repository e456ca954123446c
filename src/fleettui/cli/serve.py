"""`fleettui serve`: the HTTP API, in the foreground."""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec

from fleettui.cli import diagnostics
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import resolve_folders
from fleettui.cli.narration import log_to_stderr
from fleettui.cli.serving import make_service, run_serving

LIBRARIES = ("starlette", "uvicorn")


def serve_command(arguments: Namespace) -> int:
    """Listen first, so that a taken port is told before anybody is asked; then poll and answer."""
    from fleettui.serve.listening import ListenError, Place, open_socket

    folders = resolve_folders(arguments)
    _check_libraries()
    try:
        listener = open_socket(arguments.listen)
    except ListenError as error:
        raise CommandError(error.text, *error.hints) from None
    from fleettui.cli.polling import report_problems
    from fleettui.serve.app import serve_fleet

    log_to_stderr("serve")
    service = make_service(folders, "serve")
    place = Place(*listener.getsockname()[:2])

    def tell() -> None:
        report_problems(service.snapshot)
        diagnostics.say(f"fleettui serve: http://{place} answers for {folders.machines_dir}")

    return run_serving(serve_fleet(service, folders.state_dir, listener, tell))


def _check_libraries() -> None:
    """Raises CommandError where the optional part is not installed."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise CommandError(
            f"the HTTP server needs {' and '.join(missing)}, which this installation has not",
            "install fleettui[serve]: pip install 'fleettui[serve]'",
        )
