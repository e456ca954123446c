"""The grammar of `fleettui mcp`."""

from __future__ import annotations

DESCRIPTION = (
    "Poll the fleet and answer a language model's questions about it: MCP on stdin and stdout, for a client\n"
    "that starts this command. It changes nothing. Tools: list_machines, get_infrastructure,\n"
    "get_system_resources, find_machine_for_model, plan, fit (docs/mcp.md). Several clients share one\n"
    "poll by `fleettui serve --mcp`."
)
CODES = (
    "exit codes:\n  0  the client closed stdin\n"
    "  2  usage or configuration error: fleettui[mcp] is not installed\n"
    "  by a signal: 128 and its number (Ctrl+C: 130)\n\n"
    "example, for a client that reads such a file:\n"
    '  {"mcpServers": {"fleettui": {"command": "fleettui", "args": ["mcp"]}}}'
)
