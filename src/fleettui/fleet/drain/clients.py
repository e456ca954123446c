"""Who is connected to an engine's port: asked once, when a client has loaded a drained model again."""

from __future__ import annotations

import asyncio

from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import find_link
from fleettui.model.drain import SourceCopy
from fleettui.net.errors import LinkError
from fleettui.probes.socket_peers import PEERS_COMMAND, parse_peers

ASK_LIMIT_S = 10.0
_SHOWN = 5


async def who_is_connected(fleet: DrainFleet, copy: SourceCopy) -> str:
    """` from 192.0.2.7, 192.0.2.9`; ` (by whom is not known: …)` where nobody can be seen."""
    link = find_link(fleet, copy.machine)
    if link is None:
        return " (by whom is not known: not connected)"
    try:
        async with asyncio.timeout(ASK_LIMIT_S):
            answer = await link.run_command(PEERS_COMMAND)
    except (LinkError, TimeoutError):
        return " (by whom is not known: its connections cannot be read)"
    ours = link.count_streams(copy.port)
    peers = () if answer is None else parse_peers(answer.stdout, copy.port, ours)
    if not peers:
        return " (nobody is connected now)" if answer is not None and answer.exit_code == 0 else ""
    more = f" and {len(peers) - _SHOWN} more" if len(peers) > _SHOWN else ""
    return f" from {', '.join(peers[:_SHOWN])}{more}"
