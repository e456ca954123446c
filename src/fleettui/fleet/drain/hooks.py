"""Commands that the operator configured for an engine, run on its machine by a drain and by nothing else.

The text is run as it stands in the machine file, by the login shell of the account: nothing of ours and
nothing that a machine said is put into it.
"""

from __future__ import annotations

import asyncio

from fleettui.fleet.drain.engines import Journal, LastLook, StepError, endpoint_of
from fleettui.fleet.drain.words import DrainFleet
from fleettui.fleet.engine_line import find_link
from fleettui.model.drain import SourceCopy
from fleettui.net.errors import LinkError
from fleettui.net.link import CommandAnswer
from fleettui.probes.clean import clean_text, hide_secrets

HOOK_LIMIT_S = 600.0
_SAID_LIMIT = 200


async def stop_by_hook(fleet: DrainFleet, copy: SourceCopy, last_look: LastLook) -> None:
    """Run `stop:` of the copy's engine. Raises StepError, also where the file has none."""
    endpoint = endpoint_of(fleet.snapshot.find(copy.machine), copy)
    command = None if endpoint is None else endpoint.stop
    if command is None:
        raise StepError(f"{copy.name} on {copy.machine}: its engine has no `stop:` in the machine file")
    await run_hook(fleet, copy.machine, command, last_look)


async def start_by_hook(fleet: DrainFleet, copy: SourceCopy, journal: Journal) -> None:
    """Run `start:` of the copy's engine. Raises StepError, also where the file has none."""
    endpoint = endpoint_of(fleet.snapshot.find(copy.machine), copy)
    command = None if endpoint is None else endpoint.start
    if command is None:
        raise StepError(f"{copy.name} on {copy.machine}: its engine has no `start:` in the machine file")

    async def write_down(call: str) -> None:
        journal(call)

    await run_hook(fleet, copy.machine, command, write_down)


async def run_hook(fleet: DrainFleet, machine: str, command: str, last_look: LastLook) -> None:
    """Run one command to its end. Raises StepError where it fails, hangs, or nobody is connected."""
    link, shown = find_link(fleet, machine), hide_secrets(command)
    if link is None:
        raise StepError(f"{machine} is not connected")
    await last_look(f"ssh {machine} {shown}")
    try:
        async with asyncio.timeout(HOOK_LIMIT_S):
            answer = await link.run_command(command)
    except TimeoutError:
        raise StepError(f"{machine}: `{shown}` has not ended within {HOOK_LIMIT_S:.0f} s") from None
    except LinkError as error:
        raise StepError(f"{machine}: `{shown}` was not run: {error.text}") from None
    if answer is None:
        raise StepError(f"{machine}: the connection ended while `{shown}` ran")
    if answer.exit_code != 0:
        raise StepError(f"{machine}: `{shown}` ended with {_ending(answer)}")


def _ending(answer: CommandAnswer) -> str:
    said = clean_text((answer.stderr or answer.stdout).decode("utf-8", "replace"), _SAID_LIMIT).strip()
    how = f"signal {answer.signal}" if answer.signal else f"exit code {answer.exit_code}"
    return f"{how}: {hide_secrets(said)}" if said else how
