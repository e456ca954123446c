"""`fleettui mcp`: tools for language models over stdin and stdout."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics
from fleettui.cli.dashboard import tell_left_drains
from fleettui.cli.errors import CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.narration import log_to_stderr
from fleettui.cli.polling import report_problems
from fleettui.cli.serving import make_service, run_serving

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService


def mcp_command(arguments: Namespace) -> int:
    """Answer until the client goes. Nothing but MCP is on stdout."""
    folders = resolve_folders(arguments)
    if folders.is_readonly and arguments.allow_actions:
        raise CommandError("--readonly (or `readonly:` of the settings) refuses --allow-actions")
    check_mcp_library()
    log_to_stderr("mcp")
    if sys.stdin is not None and sys.stdin.isatty():
        diagnostics.say("fleettui mcp: waits for MCP on stdin; a client starts it, see docs/mcp.md")
    service = make_service(folders, "mcp")
    if arguments.allow_actions:
        from fleettui.fleet.drain.desk import DrainDesk

        service.drains = DrainDesk(service, folders.state_dir, folders.machines_dir)
    try:
        return run_serving(_answer(service, folders, may_act=arguments.allow_actions))
    finally:
        if service.drains is not None:
            tell_left_drains(service.snapshot)


def check_mcp_library() -> None:
    """Raises CommandError where the optional part is not installed."""
    if find_spec("mcp") is None:
        raise CommandError(
            "MCP needs the package mcp, which this installation has not",
            "install fleettui[mcp]: pip install 'fleettui[mcp]'",
        )


async def _answer(service: FleetService, folders: Folders, *, may_act: bool) -> int:
    from fleettui.cli.mcp_pipes import InputLines, OutputLines
    from fleettui.serve.mcp_stdio import answer_lines

    questions = InputLines()
    answers = OutputLines(questions.end)

    def tell() -> None:
        report_problems(service.snapshot)

    await answer_lines(service, folders.state_dir, questions, answers, tell, may_act=may_act)
    return 0
