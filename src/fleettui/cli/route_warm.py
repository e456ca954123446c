"""`--warm`: the chosen machine loads the model before it is the answer."""

from __future__ import annotations

import asyncio
import gc
import time

from fleettui.cli import diagnostics
from fleettui.cli.errors import EXIT_NEGATIVE, CommandError
from fleettui.cli.folders import Folders
from fleettui.cli.route_state import RouteState
from fleettui.cli.serving import make_connector, run_serving
from fleettui.decide.lease_terms import RESIDENT_S
from fleettui.fleet.leasing import LeasedRoute
from fleettui.fleet.needs import FITTING
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.fleet.warm_up import WarmedUp, WarmUpError, keep_measured, refusal_of, warm_up
from fleettui.model.record import replace
from fleettui.model.route import RouteCandidate
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import turn_resident

CONNECT_S = 20.0
NOTE_EACH_S = 5.0
"""On a terminal and in a log alike."""


def warm_chosen(state: RouteState, found: LeasedRoute, *, is_quiet: bool) -> LeasedRoute:
    """The answer once the model is resident. Else raises CommandError, and the lease is given back."""
    gc.enable()
    chosen = found.decision.chosen
    assert chosen is not None  # noqa: S101 - the caller looked
    refusal = refusal_of(chosen)
    if refusal is not None:
        _give_back(state, found)
        raise CommandError(refusal, exit_code=EXIT_NEGATIVE)
    done: list[WarmedUp] = []

    async def work() -> int:
        done.append(await _warm(state.folders, chosen, found.decision.query.context, is_quiet=is_quiet))
        return 0

    try:
        code = run_serving(work())
    except WarmUpError as error:
        _give_back(state, found)
        raise CommandError(str(error), "try the next machine: --exclude", exit_code=EXIT_NEGATIVE) from None
    except KeyboardInterrupt:
        _give_back(state, found)
        diagnostics.say(
            f"not waited for any more: Ollama gives up a load that nobody waits for, so {chosen.model} "
            f"may not be loaded on {chosen.machine}; see: fleettui status {chosen.machine}"
        )
        raise
    if not done:
        _give_back(state, found)
        raise SystemExit(code)  # ended by a signal
    if not is_quiet:
        diagnostics.say(done[0].text)
    return _keep(state, found, done[0])


async def _warm(folders: Folders, chosen: RouteCandidate, context: int | None, *, is_quiet: bool) -> WarmedUp:
    settings = FleetSettings(
        folders.machines_dir, 1.0, FITTING, only=(chosen.machine,), state_dir=folders.state_dir
    )
    service = FleetService(settings, make_connector(folders))
    said_at = 0.0

    def note(text: str) -> None:
        nonlocal said_at
        if not is_quiet and time.monotonic() - said_at >= NOTE_EACH_S:
            said_at = time.monotonic()
            diagnostics.say(text)

    settled = asyncio.Event()

    def look(_: object) -> None:
        if service.pollers and all(poller.is_settled for poller in service.pollers):
            settled.set()

    service.subscribe(look)
    await service.start()
    try:
        try:
            async with asyncio.timeout(CONNECT_S):
                await settled.wait()
        except TimeoutError:
            raise WarmUpError(
                f"{chosen.machine} did not answer within {CONNECT_S:g} s, so nothing was loaded"
            ) from None
        return await warm_up(service, chosen, note, context=context)
    finally:
        await service.stop()


def _give_back(state: RouteState, found: LeasedRoute) -> None:
    if found.lease is not None:
        state.give_back(found.lease)


def _keep(state: RouteState, found: LeasedRoute, warmed: WarmedUp) -> LeasedRoute:
    """Keep what was measured; from now on the lease holds as one on a resident copy does."""
    now, folder, lease = time.time(), state.folders.machines_dir, found.lease
    try:
        with Store.open(state.folders.state_dir) as store:
            keep_measured(store, folder, warmed, now)
            if lease is not None:
                until = now + RESIDENT_S if state.hold_s is None else max(lease.until, now + RESIDENT_S)
                lease = replace(lease, taken_at=now, until=until)
                turn_resident(store, folder, lease)
    except StoreError as error:
        diagnostics.say_error("route", f"what the load took is not kept: {error}")
    return replace(found, lease=lease)
