"""`fleettui serve`: the HTTP API, in the foreground."""

from __future__ import annotations

import resource
from argparse import Namespace
from contextlib import suppress
from importlib.util import find_spec

from fleettui.cli import diagnostics
from fleettui.cli.dashboard import tell_left_drains
from fleettui.cli.errors import EXIT_OK, CommandError
from fleettui.cli.folders import resolve_folders
from fleettui.cli.narration import log_to_stderr
from fleettui.cli.serving import make_service, run_serving
from fleettui.view.text import clean

LIBRARIES = ("starlette", "uvicorn", "prometheus_client")
FILES = 4096


def serve_command(arguments: Namespace) -> int:
    """Listen first, so that a taken port is told before anybody is asked; then poll and answer."""
    if arguments.make_token is not None:
        return _make_token(arguments.make_token)
    folders = resolve_folders(arguments)
    if folders.is_readonly and arguments.allow_actions:
        raise CommandError("--readonly (or `readonly:` of the settings) refuses --allow-actions")
    _check_libraries()
    if arguments.mcp:
        from fleettui.cli.mcp import check_mcp_library

        check_mcp_library()
    _allow_files()
    from fleettui.cli.polling import report_problems
    from fleettui.serve.app import serve_fleet
    from fleettui.serve.listening import ListenError
    from fleettui.serve.terms import Entrance, terms_of

    try:
        entrance = Entrance(terms_of(arguments))
    except ListenError as error:
        raise CommandError(error.text, *error.hints) from None
    log_to_stderr("serve")
    service = make_service(folders, "serve")
    if arguments.allow_actions:
        from fleettui.fleet.drain.desk import DrainDesk

        service.drains = DrainDesk(service, folders.state_dir, folders.machines_dir)

    def tell() -> None:
        report_problems(service.snapshot)
        for place in entrance.places:
            diagnostics.say(f"fleettui serve: {place} answers for {folders.machines_dir}")
        if arguments.allow_actions:
            diagnostics.say(f"fleettui serve: changes are taken from: {_actors(arguments)}")
        if entrance.is_plain_beyond:
            diagnostics.say(
                "fleettui serve: warning: without TLS tokens and answers can be read on their way"
            )

    try:
        return run_serving(serve_fleet(service, folders.state_dir, entrance, tell, has_mcp=arguments.mcp))
    finally:
        entrance.close()
        if service.drains is not None:
            tell_left_drains(service.snapshot)


def _allow_files() -> None:
    """Clients and machines take a file each, and clients alone could take the 1,024 that are usual."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _make_token(path: str) -> int:
    from fleettui.serve.tokens import TokenError, make_token_file

    try:
        make_token_file(path)
    except TokenError as error:
        raise CommandError(error.text, *error.hints) from None
    diagnostics.say(
        f"fleettui serve: {path} has a new token, for you alone",
        f"the server: --token-file {path}, or --read-token-file {path} for reading only",
        "a client sends it as: Authorization: Bearer TOKEN",
    )
    return EXIT_OK


def _actors(arguments: Namespace) -> str:
    tokens = [f"whoever has the token of {path}" for path in arguments.token_files]
    own = [f"you, at {arguments.socket}"] if arguments.socket is not None else []
    return "; ".join(clean(text) for text in (*tokens, *own))


def _check_libraries() -> None:
    """Raises CommandError where the optional part is not installed."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise CommandError(
            f"the HTTP server needs {' and '.join(missing)}, which this installation has not",
            "install fleettui[serve]: pip install 'fleettui[serve]'",
        )
