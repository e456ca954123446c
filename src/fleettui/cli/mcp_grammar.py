"""The grammar of `fleettui mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser

DESCRIPTION = (
    "Poll the fleet and answer a language model's questions about it: MCP on stdin and stdout, for a client\n"
    "that starts this command. Tools: list_machines, get_infrastructure, get_system_resources,\n"
    "find_machine_for_model, plan, fit, drain_status; with --allow-actions also set_maintenance,\n"
    "drain_machine, cancel_drain, undrain_machine, take_lease, release_lease (docs/mcp.md). Several clients\n"
    "share one poll by `fleettui serve --mcp`."
)
CODES = (
    "exit codes:\n  0  the client closed stdin\n"
    "  2  usage or configuration error: fleettui[mcp] is not installed\n"
    "  by a signal: 128 and its number (Ctrl+C: 130)\n\n"
    "example, for a client that reads such a file:\n"
    '  {"mcpServers": {"fleettui": {"command": "fleettui", "args": ["mcp"]}}}'
)


def add_mcp_options(parser: ArgumentParser) -> None:
    """What it may do."""
    parser.add_argument(
        "--allow-actions",
        action="store_true",
        help="changes too: maintenance, drains, leases; whoever asks acts in your name",
    )
