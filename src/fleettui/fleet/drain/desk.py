"""The door to draining: previews, starts, cancels, undrains, and works on it beside any front end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.warm_up import WarmFleet
from fleettui.model.drain import CopyProgress, DrainOptions, DrainPlan, DrainStatus
from fleettui.model.literal import Literal

DrainFailure = Literal[
    "unknown_name",
    "reason",  # missing, or too long
    "until",  # not ahead
    "no_drain",  # the machine has none
    "changed_meanwhile",  # somebody else changed it after us
    "no_data",  # the machine does not answer, so what is loaded there is not known
    "state",  # the state database
]


class DrainError(Exception):
    """Nothing was done. `text`: what, where, why, what to do next."""

    def __init__(self, kind: DrainFailure, name: str, text: str) -> None:
        super().__init__(text)
        self.kind: DrainFailure = kind
        self.name = name
        """Of the machine; empty where it is about none."""
        self.text = text


class DrainFleet(WarmFleet, Protocol):
    """What is needed of a running service."""

    @property
    def flags(self) -> FlagOperations | None:
        """The flags that its snapshots show."""


class DrainDesk:
    """Drains of one machines folder. Every call raises DrainError where it says no more."""

    def __init__(
        self, service: DrainFleet, state_dir: str, machines_dir: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._service = service
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self._clock = clock
        self.error: str | None = None
        """Why drains cannot be followed; None while all is well."""

    async def preview(self, machines: Sequence[str], options: DrainOptions) -> tuple[DrainPlan, ...]:
        """What a drain of these machines would do, one plan for each; nothing is changed."""
        raise NotImplementedError

    async def start(
        self,
        machines: Sequence[str],
        reason: str,
        options: DrainOptions,
        *,
        until: float | None = None,
        by: str | None = None,
    ) -> tuple[DrainPlan, ...]:
        """Flag all these machines, then work on them beside the caller; their plans.

        A machine that is drained already begins anew, with these options. Lines of classes that are not
        forced do not hold the others up: they end as `blocked`. Whoever wants them refused looks at
        `DrainPlan.refused` of a preview first.
        """
        raise NotImplementedError

    async def cancel(self, machine: str, *, aborts_load: bool = False, is_eligible: bool = False) -> None:
        """No new steps; a load under way finishes, or is given up. The flag stays, unless `is_eligible`."""
        raise NotImplementedError

    async def undrain(self, machine: str, *, returns: bool = False) -> None:
        """Take the flag off; `returns`: what was moved away is moved back beside the caller (`wait`)."""
        raise NotImplementedError

    async def skip(self, machine: str, copy_key: tuple[str, str, int, str]) -> None:
        """Leave one copy where it is (`SourceCopy.key`); the drain then ends as blocked."""
        raise NotImplementedError

    async def status(self, machine: str) -> DrainStatus | None:
        """Of this or another process's drain; None: the machine has none."""
        raise NotImplementedError

    async def statuses(self) -> tuple[DrainStatus, ...]:
        """Of every machine whose drain flag is on."""
        raise NotImplementedError

    def returning(self, machine: str) -> tuple[CopyProgress, ...]:
        """Copies that are moved back now, or were by the last `undrain`; `state` as of a drain, `switched`
        once the copy is back."""
        raise NotImplementedError

    async def resume(self) -> tuple[str, ...]:
        """Take over drains that nobody works on any more; the names. Cheap, for every cycle."""
        raise NotImplementedError

    def subscribe(self, subscriber: Callable[[str], None]) -> Callable[[], None]:
        """Hear in the event loop the name of each machine whose drain went on; returns what ends it."""
        raise NotImplementedError

    async def wait(self, machine: str) -> DrainStatus | None:
        """Until its work here, or in another process, has ended; how it stands then."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the work here and let the next worker in; nothing is changed on any machine. More than once
        is fine."""
        await asyncio.sleep(0)
