"""The two steps on one copy that change a machine: load it elsewhere and verify that; unload it here.

Both look again before they do anything: a load whether its target still takes the copy, an unload whether
the copy elsewhere is still there, by fresh answers of its engine and fresh flags of its machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from fleettui.decide.drain.keep import keep_lack
from fleettui.decide.drain.sight import Cover, find_cover, is_same_model, planned_context, shortfall_of
from fleettui.decide.ollama_use import find_ollama_use
from fleettui.fleet.drain import ollama
from fleettui.fleet.drain.engines import (
    Loader,
    StepError,
    address_of_cover,
    list_now,
    loader_of,
    unloader_of,
)
from fleettui.fleet.drain.shared import DrainRoom
from fleettui.fleet.engine_line import EngineLine, address_of
from fleettui.model.drain import LOADING_CLASSES, DrainOptions, JournalEntry, PlannedCopy
from fleettui.model.names import canonical_name
from fleettui.model.readings import LoadedModel
from fleettui.model.record import dataclass, replace
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown
from fleettui.store.drain_unloads import Standing

COVER_MARGIN_S = 30.0
"""A covering copy that ends sooner covers nothing."""


class CopyJournal(Protocol):
    """Writes the steps of one copy down and shows how far it is."""

    def note(self, text: str) -> None:
        """How far the step is."""

    def step(self, step: str, *, target: str = "", result: str = "ok", call: str = "") -> None:
        """A step that was made."""


class UnloadJournal(CopyJournal, Protocol):
    """Of a copy that is unloaded."""

    def unload_entry(self, cover: str, call: str) -> JournalEntry:
        """What is written down before the copy is unloaded; `cover`: the machine that serves it instead."""

    def note_unload(self) -> None:
        """That is written down, and the unload goes out."""


class TargetRefused(Exception):
    """The copy was not loaded there, and the next target may be tried. `is_failure`: the target failed, so
    that it counts; else it only changed since it was planned."""

    def __init__(self, text: str, *, is_failure: bool, vanished: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.is_failure = is_failure
        self.vanished = vanished
        """Copies on the target that went for it without having been announced."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A copy that stands elsewhere, verified."""

    text: str
    vanished: tuple[str, ...] = ()
    """Copies on the target that went without having been announced."""


class CopyLoad:
    """One load on a planned target, from the second look at it to the verified copy."""

    def __init__(
        self, room: DrainRoom, line: PlannedCopy, options: DrainOptions, journal: CopyJournal
    ) -> None:
        assert line.target is not None  # noqa: S101 - only such lines are loaded
        self._room = room
        self._line = line
        self._target: RouteCandidate = line.target
        self._options = options
        self._journal = journal
        self._loader: Loader | None = None
        self._is_given_up = False

    def abort(self) -> None:
        """Give the load up; one that has not begun never does."""
        self._is_given_up = True
        if self._loader is not None:
            self._loader.abort()

    async def run(self, note_verifying: Callable[[], None]) -> Loaded:
        """Raises TargetRefused; StepError where nothing could be asked at all."""
        await self._look_again()
        book = self._room.book
        lease = book.lease_on(self._target)
        try:
            await book.take_lease(lease)
            return await self._bring(note_verifying)
        finally:
            self._room.spawn(book.drop_lease(lease))

    async def _bring(self, note_verifying: Callable[[], None]) -> Loaded:
        target, room = self._target, self._room
        before = await self._list()
        if self._is_given_up:
            raise TargetRefused(f"{target.machine}: the load was given up", is_failure=False)
        call = lambda text: self._journal.step("load", target=target.machine, call=text)  # noqa: E731
        try:
            loader = self._loader = loader_of(room.service, self._line, self._line.num_ctx, call, room.now)
            landing = await loader.run(self._journal.note)
        except StepError as error:
            self._journal.step("load", target=target.machine, result=str(error))
            raise await self._take_back(str(error), before) from None
        self._journal.step("loaded", target=target.machine, result=landing.text)
        note_verifying()
        lacks = self._find_lack(landing.copy)
        if lacks:
            self._journal.step("degraded", target=target.machine, result=lacks)
            raise await self._take_back(lacks, before)
        await self._keep_measured(loader)
        try:
            if self._options.probes:
                await self._probe()
        except StepError as error:
            raise await self._take_back(str(error), before) from None
        self._journal.step("verified", target=target.machine, result=landing.text)
        return Loaded(landing.text, self._vanished(before, landing.listed))

    def _vanished(self, before: tuple[LoadedModel, ...], listed: tuple[LoadedModel, ...]) -> tuple[str, ...]:
        announced = tuple([eviction.model for eviction in self._target.evicts])
        return ollama.vanished(before, listed, announced, self._room.now())

    async def _take_back(self, why: str, before: tuple[LoadedModel, ...]) -> TargetRefused:
        """What landed and is not wanted goes again, where it was not there before; what went for it is told.
        The refusal to raise."""
        name, model = self._target.machine, self._target.model
        try:
            listed = await list_now(self._room.service, address_of(self._target))
        except StepError as error:
            self._journal.step("left", target=name, result=f"{model} may be loaded there by now: {error}")
            return TargetRefused(f"{why}; {model} may be loaded on {name} by now", is_failure=True)
        lost = self._vanished(before, listed)
        names = [item.name for item in listed if canonical_name(item.name) == canonical_name(model)]
        if self._target.engine == "ollama" and not self._is_given_up:
            for landed in {*names} - {item.name for item in before}:
                await self._unload_again(landed)
        return TargetRefused(why, is_failure=True, vanished=lost)

    async def _unload_again(self, landed: str) -> None:
        line, name = EngineLine(self._room.service, address_of(self._target)), self._target.machine

        async def write_down(call: str) -> None:
            self._journal.step("unload_again", target=name, call=call)

        try:
            await ollama.unload_model(line, landed, write_down)
        except StepError as error:
            self._journal.step("unload_again", target=name, result=str(error))

    async def _look_again(self) -> None:
        """The plan is of a while ago: is there still room, and would nothing more have to go?"""
        name, line = self._target.machine, self._line
        if await self._room.ask_again(name) is None:
            is_asked = self._room.fleet.paused_at is None
            raise TargetRefused(f"{name}: no fresh answer", is_failure=is_asked)
        only = replace(self._options, targets=(name,))
        again = await self._room.plan_copy(line.copy, only)
        if again.target is None or again.target.machine != name:
            raise TargetRefused(f"{name} takes it no more: {again.text}", is_failure=False)
        if again.drain_class == "covered":
            raise TargetRefused(f"{name} serves it by now", is_failure=False)
        if _rank(again) > _rank(line):
            raise TargetRefused(
                f"{name}: {again.drain_class} by now, planned as {line.drain_class}", is_failure=False
            )
        victims = {eviction.model for eviction in again.target.evicts}
        machine = self._room.fleet.find(name)
        for copy in () if machine is None else machine.loaded:
            if copy.name in victims and self._room.is_relied_on(name, copy):
                text = f"{name}: {copy.name} there serves a copy that was drained"
                raise TargetRefused(text, is_failure=False)
        self._line, self._target = again, again.target

    async def _list(self) -> tuple[LoadedModel, ...]:
        try:
            return await list_now(self._room.service, address_of(self._target))
        except StepError as error:
            raise TargetRefused(str(error), is_failure=True) from None

    def _find_lack(self, landed: LoadedModel) -> str:
        """What is not as planned of the copy that landed; empty: nothing."""
        copy, name = self._line.copy, self._target.machine
        lacks = ""
        if not is_same_model(copy, landed, self._room.fleet.catalog):
            lacks = "it has other weights there"
        lacks = lacks or shortfall_of(copy, landed, self._options, planned_context(self._line, name))
        return f"{copy.name} on {name}: {lacks}" if lacks else ""

    async def _keep_measured(self, loader: Loader) -> None:
        if isinstance(loader, ollama.OllamaLoad) and loader.warmed is not None:
            self._room.spawn(self._room.book.keep_measured(loader.warmed))

    async def _probe(self) -> None:
        """One token, where the model generates any. Raises StepError."""
        if self._target.engine != "ollama":
            return
        line, name = EngineLine(self._room.service, address_of(self._target)), self._target.machine
        call = lambda sent: self._journal.step("probe", target=name, call=sent)  # noqa: E731
        await ollama.probe(line, self._target.model, self._line.num_ctx, call)


def _rank(line: PlannedCopy) -> int:
    """How much a class asks of the operator: none may become another that asks more."""
    return LOADING_CLASSES.index(line.drain_class) if line.drain_class in LOADING_CLASSES else 9


class Uncovered(Exception):
    """Nothing was unloaded: no verified copy elsewhere stands for it now, or too few for the catalog."""


class Withdrawn(Exception):
    """Nothing was unloaded: the operator does not want it any more."""


async def release(
    room: DrainRoom,
    line: PlannedCopy,
    preferred: str | None,
    options: DrainOptions,
    journal: UnloadJournal,
    may_unload: Callable[[], Awaitable[str]] | None = None,
) -> Cover | None:
    """Unload a copy, once a copy elsewhere was verified this moment; the one that stands for it.

    Once nothing else is left to ask, `may_unload` tells why it shall stay; empty: it shall go, if its drain
    still goes on. None: it is no drain's. Raises Uncovered, Withdrawn, StepError.
    """
    cover = None
    is_forced = line.is_lost and line.drain_class in options.forced
    if not is_forced or find_cover(room.fleet, line, preferred, options) is not None:
        cover = await _verify_cover(room, line, preferred, options, journal)
    machine = room.fleet.find(line.copy.machine)
    unloader = unloader_of(line.copy.engine)
    refusal = "it is not declared any more" if machine is None else unloader.refusal(machine, line.copy)
    if refusal:
        raise StepError(refusal)

    async def look_last(call: str) -> None:
        withdrawn = "" if may_unload is None else await may_unload()
        if withdrawn:
            raise Withdrawn(withdrawn)
        entry = journal.unload_entry("" if cover is None else cover.machine, call)
        fleet, now = room.fleet, room.now()

        def check(standing: Standing) -> None:
            if may_unload is not None and not standing.goes_on(entry.drain_id):
                raise Withdrawn("the drain was ended before it was unloaded")
            _check_standing(fleet, line, cover, standing, now)

        await room.settle()  # what was done before stands before it
        await room.book.write_unload(entry, check)
        journal.note_unload()

    await unloader.unload(room.service, line.copy, look_last)
    return cover


async def _verify_cover(
    room: DrainRoom, line: PlannedCopy, preferred: str | None, options: DrainOptions, journal: CopyJournal
) -> Cover:
    cover = find_cover(room.fleet, line, preferred, options)
    if cover is None:
        raise Uncovered(f"{line.copy.name}: nobody else serves it now")
    cover = await _fresh(room, line, cover, options)
    if await _keep_longer(room, line, cover, journal):
        cover = await _fresh(room, line, cover, options)
    left_s = _left_s(cover.copy, room.now())
    if left_s < COVER_MARGIN_S:
        raise Uncovered(f"{line.copy.name} on {cover.machine} ends in {max(0.0, left_s):.0f} s")
    return cover


def _check_standing(
    fleet: FleetSnapshot, line: PlannedCopy, cover: Cover | None, standing: Standing, now: float
) -> None:
    """By what is stored this moment, which snapshots may not show yet. Raises Uncovered where the machine
    that serves it instead shall be empty, or was to be, and where too few copies would be left."""
    leaving = standing.leaving(now)
    if cover is not None:
        if cover.machine in standing.out_of_service:
            raise Uncovered(f"{cover.machine} is taken out of service itself")
        age_s = leaving.get((cover.machine, cover.copy.name))
        if age_s is not None:
            raise Uncovered(f"{cover.copy.name} on {cover.machine} was asked to go {age_s:.0f} s ago")
    lack = keep_lack(fleet, line.copy, line.keep, standing.out_of_service, leaving)
    if lack:
        raise Uncovered(lack)


async def _fresh(room: DrainRoom, line: PlannedCopy, cover: Cover, options: DrainOptions) -> Cover:
    """The covering copy as its engine lists it this moment. Raises Uncovered."""
    try:
        listed = await list_now(room.service, address_of_cover(cover))
    except StepError as error:
        raise Uncovered(str(error)) from None
    planned = planned_context(line, cover.machine)
    lacks = "it is not listed any more"
    for copy in listed:
        if is_same_model(line.copy, copy, room.fleet.catalog):
            lacks = shortfall_of(line.copy, copy, options, planned)
            if not lacks:
                return replace(cover, copy=copy)
    raise Uncovered(f"{line.copy.name} on {cover.machine}: {lacks}")


async def _keep_longer(room: DrainRoom, line: PlannedCopy, cover: Cover, journal: CopyJournal) -> bool:
    machine = room.fleet.find(cover.machine)
    if machine is None:
        return False
    default = find_ollama_use(machine, cover.port).use.context

    def call(text: str) -> None:
        journal.step("keep_longer", target=cover.machine, call=text)

    try:
        return await ollama.keep_longer(room.service, cover, line.copy, default, room.now(), call)
    except StepError as error:
        raise Uncovered(str(error)) from None


def _left_s(copy: LoadedModel, now: float) -> float:
    if copy.is_pinned or isinstance(copy.expires_at, Unknown):
        return float("inf")
    return copy.expires_at - now
