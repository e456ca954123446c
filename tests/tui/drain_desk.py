"""A desk for drains that does what a test says: previews are real, nothing is moved anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tui_fleet import NOW, FakeService

from fleettui.decide.drain.plan import plan_drains
from fleettui.decide.knowledge import NOTHING_KNOWN
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import (
    CopyProgress,
    CopyState,
    Drain,
    DrainLock,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
    SourceCopy,
)
from fleettui.model.snapshot import DrainFlag, DrainState

ME = "mia@jump"


class FakeDrainDesk:
    """Keeps statuses; the flags come out as the next snapshot."""

    error: str | None = None

    def __init__(self, service: FakeService) -> None:
        self.service = service
        self.asked: list[tuple[Any, ...]] = []
        """What was called that changes something."""
        self.known: dict[str, DrainStatus] = {}
        self.back: dict[str, tuple[CopyProgress, ...]] = {}
        self.refusal: DrainError | None = None
        """What the next call raises."""
        self._subscribers: list[Callable[[str], None]] = []

    # What a test does

    def put(self, name: str, *copies: CopyProgress, **of_drain: Any) -> DrainStatus:
        """The machine has a drain that is so far."""
        plain = Drain(f"d-{name}", name, "running", "PSU swap", ME, NOW - 34, revision=1)
        drain = replace(plain, **of_drain)
        before = self.known.get(name)
        journal = before.journal if before is not None else journal_of(name)
        return self.show(DrainStatus(drain, copies, lock_of(name), journal))

    def show(self, status: DrainStatus) -> DrainStatus:
        """As it stands now."""
        drain = status.drain
        self.known[drain.machine] = status
        flag = DrainFlag(
            drain.state,
            drain.reason,
            drain.by,
            drain.since,
            drain.until,
            drain.text,
            drain.id,
            drain.revision,
        )
        self._publish(drain.machine, flag)
        return status

    def _publish(self, name: str, flag: DrainFlag | None) -> None:
        shown = self.service.snapshot.find(name)
        assert shown is not None
        self.service.publish(replace(shown, drain=flag, seq=shown.seq + 1))
        for subscriber in list(self._subscribers):
            subscriber(name)

    def _refuse(self) -> None:
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal

    # What the dashboard calls

    async def preview(self, machines: Sequence[str], options: DrainOptions) -> tuple[DrainPlan, ...]:
        self._refuse()
        return plan_drains(self.service.snapshot, tuple(machines), NOTHING_KNOWN, options, NOW)

    async def start(
        self,
        machines: Sequence[str],
        reason: str,
        options: DrainOptions,
        *,
        until: float | None = None,
        by: str | None = None,
    ) -> tuple[DrainPlan, ...]:
        self._refuse()
        self.asked.append(("start", tuple(machines), reason, options, until))
        plans = await self.preview(machines, options)
        for plan in plans:
            copies = [
                CopyProgress(
                    line.copy,
                    line.drain_class,
                    target=None if line.target is None else line.target.machine,
                    since=NOW,
                )
                for line in plan.copies
            ]
            self.put(plan.machine, *copies, reason=reason, options=options, until=until, since=NOW)
        return plans

    async def cancel(self, machine: str, *, aborts_load: bool = False, is_eligible: bool = False) -> None:
        self._refuse()
        self.asked.append(("cancel", machine, aborts_load, is_eligible))
        if is_eligible:
            del self.known[machine]
            self._publish(machine, None)
            return
        status = self.known[machine]
        copies = status.copies
        if aborts_load:
            copies = tuple([replace(copy, state="pending", since=0.0) for copy in copies])
        drain = replace(status.drain, state="cancelled", text=f"cancelled by {ME}")
        self.show(replace(status, drain=drain, copies=copies, lock=None))

    async def undrain(self, machine: str, *, returns: bool = False) -> None:
        self._refuse()
        self.asked.append(("undrain", machine, returns))
        status = self.known.pop(machine)
        if returns:
            self.back[machine] = tuple([replace(copy, state="loading") for copy in status.copies])
        self._publish(machine, None)

    async def skip(self, machine: str, copy_key: tuple[str, str, int, str]) -> None:
        self.asked.append(("skip", machine, copy_key))
        status = self.known[machine]
        copies = [
            replace(copy, state="skipped") if copy.copy.key == copy_key else copy for copy in status.copies
        ]
        self.show(replace(status, copies=tuple(copies)))

    async def status(self, machine: str) -> DrainStatus | None:
        return self.known.get(machine)

    async def statuses(self) -> tuple[DrainStatus, ...]:
        return tuple(self.known.values())

    def returning(self, machine: str) -> tuple[CopyProgress, ...]:
        return self.back.get(machine, ())

    async def resume(self) -> tuple[str, ...]:
        self.asked.append(("resume",))
        left = [name for name, status in self.known.items() if status.drain.state in ("planned", "running")]
        for name in left:
            self.show(replace(self.known[name], lock=lock_of(name)))
        return tuple(left)

    def resume_soon(self) -> None: ...

    def subscribe(self, subscriber: Callable[[str], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def close(self) -> None: ...


def copy_at(
    machine: str, state: CopyState, name: str = "llama3.1:70b", target: str = "hopper", **more: Any
) -> CopyProgress:
    """A copy of Ollama's that is so far, for 12 s."""
    copy = SourceCopy(machine, "ollama", 11434, name)
    return replace(CopyProgress(copy, "move", state, NOW - 12, target or None), **more)


COPIES_AT_WORK = (
    copy_at("ada", "gone", "nomic-embed-text", "cleo", drain_class="covered", unloads=1),
    copy_at("ada", "loading", eta_s=29.0, is_moved=True),
    copy_at(
        "ada", "waiting_target", "qwen3:32b", drain_class="move_evicts", text="llama3.1:70b is loaded first"
    ),
    copy_at(
        "ada", "waiting_idle", "phi4:14b", "spark", eta_s=10.0, is_moved=True, text="2 requests in work",
        failures=("bora: llama runner process has terminated: cudaMalloc failed: out of memory",),
    ),
    copy_at("ada", "failed", "gpt-oss:120b", "", drain_class="last_copy", text="bora 61.2 < 66.0 GiB"),
    replace(
        copy_at("ada", "blocked", "qwen2-vl", "", drain_class="unmanaged", text="no `stop:` command"),
        copy=SourceCopy("ada", "vllm", 8001, "qwen2-vl"),
    ),
)  # fmt: skip
"""One in each sort of state."""


def state_of(desk: FakeDrainDesk, name: str, state: DrainState, text: str = "") -> None:
    """The drain ends so."""
    status = desk.known[name]
    desk.show(replace(status, drain=replace(status.drain, state=state, text=text), lock=None))


def lock_of(name: str, beat_at: float = NOW - 2) -> DrainLock:
    """Another process on this computer works on it."""
    return DrainLock(name, ME, 4242, NOW - 34, beat_at)


def journal_of(name: str) -> tuple[JournalEntry, ...]:
    """The first steps of a drain."""

    def entry(ago: float, step: str, copy: str = "", target: str = "", result: str = "ok", call: str = ""):  # type: ignore[no-untyped-def]
        return JournalEntry(
            NOW - ago, name, f"d-{name}", ME, 4242, step, copy, target, result, call, int(100 - ago)
        )

    call = 'POST hopper.example.net:11434/api/generate {"model": "llama3.1:70b", "keep_alive": "10m"}'
    return (
        entry(34, "started", result="PSU swap"),
        entry(33, "load", "llama3.1:70b", "hopper", call=call),
        entry(4, "loaded", "llama3.1:70b", "hopper"),
        entry(3, "verified", "llama3.1:70b", "hopper", "context 8192, 39.6 GiB on GPU 0"),
    )
