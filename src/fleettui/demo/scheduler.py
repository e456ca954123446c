"""Ollama's scheduler in simulated time: loads, keep_alive, reloads and evictions.

Rules as in ollama v0.33 `server/sched.go`: one cold load at a time, warm requests pass it; an idle runner
with the shortest keep_alive, then the lowest path, is evicted; at most 3 runners for each GPU.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fleettui.demo.hardware import GIB
from fleettui.demo.load_faults import (
    LOST_TEXT,
    OOM_TEXT,
    STALL_LIMIT_S,
    STALL_TEXT,
    EngineFaults,
    FaultKind,
    Residency,
    new_history,
)
from fleettui.demo.memory_pool import MemoryPool, Placement
from fleettui.demo.models import ModelSpec, file_bytes

AUTOMATIC_CONTEXTS = ((47 * GIB, 262_144), (23 * GIB, 32_768), (0, 4_096))
"""Default context by the sum of VRAM."""
MAX_QUEUE = 512
LOAD_BYTES_S = 2.2 * GIB
RequestState = Literal["queued", "loading", "running", "done", "failed", "cancelled"]
BUSY_TEXT = "server busy, please try again.  maximum pending requests exceeded"


@dataclass(slots=True, eq=False)
class Runner:
    """One runner process with one model."""

    model: ModelSpec
    asked_context: int | None
    context: int
    placement: Placement
    pid: int
    port: int
    started_at: float
    ready_at: float
    keep_alive_s: float
    """math.inf: pinned."""
    last_finish: float | None = None
    active: list[Request] = field(default_factory=list)
    is_ready: bool = False
    failure: str = ""
    """What its load ends with instead of a copy."""
    is_hung: bool = False
    """It was told to go and stays."""

    @property
    def is_busy(self) -> bool:
        return bool(self.active) or not self.is_ready

    @property
    def expires_at(self) -> float:
        """Simulated seconds; while a request runs, the value of the last finish stands."""
        return (self.started_at if self.last_finish is None else self.last_finish) + self.keep_alive_s

    def loaded_share(self, now: float) -> float:
        """How much of it is in memory while it loads, 0-1."""
        if self.is_ready or self.ready_at <= self.started_at:
            return 1.0
        return min(1.0, max(0.02, (now - self.started_at) / (self.ready_at - self.started_at)))


@dataclass(slots=True, eq=False)
class Request:
    """One request of a client."""

    model: ModelSpec
    context: int | None = None
    """num_ctx; None: the default."""
    keep_alive_s: float | None = None
    """None: the default; negative: for ever."""
    work_s: float = 0.0
    """0: load only."""
    state: RequestState = "queued"
    runner: Runner | None = None
    started_at: float = 0.0
    """When it was accepted."""
    loaded_at: float = 0.0
    """When its runner was there."""
    finish_at: float = math.inf
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass(slots=True)
class Scheduler:
    """The engine of one machine. Every call carries simulated seconds; `process` runs what is due."""

    pool: MemoryPool
    default_keep_alive_s: float
    default_context: int | None
    next_pid: Callable[[], int]
    load_bytes_s: float = LOAD_BYTES_S
    """Read speed of the disk with the models."""
    is_instant: bool = False
    """Loads take no time: for a fleet whose clock stands."""
    max_queue: int = MAX_QUEUE
    runners: dict[str, Runner] = field(default_factory=dict)
    """By blob digest: tags that share a file share a runner."""
    waiting: deque[Request] = field(default_factory=deque)
    faults: EngineFaults = field(default_factory=EngineFaults)
    history: deque[Residency] = field(default_factory=new_history)

    @property
    def max_runners(self) -> int:
        return 3 * max(1, len(self.pool.cards))

    def submit(self, request: Request, now: float) -> None:
        """Accepts a request; it may be running when this returns. A full queue fails it."""
        if len(self.waiting) >= self.max_queue:
            request.state, request.error = "failed", BUSY_TEXT
            return
        request.started_at = now
        self.waiting.append(request)
        self.process(now)

    def cancel(self, request: Request, now: float) -> None:
        """The client is gone: ends the request, and the load when nobody else waits for it."""
        if request.is_over:
            return
        runner = request.runner
        request.state = "cancelled"
        if request in self.waiting:
            self.waiting.remove(request)
        if runner is not None and request in runner.active:
            runner.active.remove(request)
            if not runner.is_ready and not runner.active:
                self._unload(runner, now)
            elif not runner.active:
                runner.last_finish = now
        self.process(now)

    def expire(self, model: ModelSpec, now: float) -> None:
        """Unload as soon as no request runs (`keep_alive: 0` without a prompt)."""
        runner = self.runners.get(model.blob_digest)
        if runner is None:
            return
        self._end_when_idle(runner, now)
        self.process(now)

    def expire_soon(self, model: ModelSpec) -> None:
        """As `expire`, but with the next event: the caller answers first."""
        runner = self.runners.get(model.blob_digest)
        if runner is not None:
            runner.keep_alive_s = 0.0

    def lose_everything(self, now: float) -> None:
        """The engine died, or its machine: no copy and no request is left, all memory is back."""
        requests = [*self.waiting, *(item for runner in self.runners.values() for item in runner.active)]
        for request in requests:
            request.state, request.error = "failed", LOST_TEXT
        for runner in self.runners.values():
            self._note(runner, now, is_resident=False)
        self.waiting.clear()
        self.runners.clear()
        self.pool.taken.clear()
        self.pool.releasing.clear()

    def hurry(self, now: float) -> None:
        """Loads and requests under way are over at once: well, or as their fault has it."""
        for runner in self.runners.values():
            runner.ready_at = min(runner.ready_at, now)
            for request in runner.active:
                if request.state == "running":
                    request.work_s, request.finish_at = now - request.loaded_at, now
        self.process(now)

    def next_event_at(self) -> float:
        """Simulated seconds of the next thing that happens by itself."""
        times = [release.at for release in self.pool.releasing]
        for runner in self.runners.values():
            if not runner.is_ready:
                times.append(runner.ready_at)
            elif runner.active:
                times.append(min(request.finish_at for request in runner.active))
            elif not runner.is_hung:
                times.append(runner.expires_at)
        return min(times, default=math.inf)

    def process(self, now: float) -> None:
        """Runs everything that is due, until nothing changes any more."""
        while self._finish_due(now) or self._start_next(now) or self.pool.release_until(now):
            pass

    def _finish_due(self, now: float) -> bool:
        """Memory that is back, loads and requests that are done, copies that expire."""
        is_changed = self.pool.release_until(now)
        for runner in list(self.runners.values()):
            if not runner.is_ready and runner.ready_at <= now:
                is_changed = True
                if runner.failure:
                    self._fail_load(runner, now)
                    continue
                self._become_ready(runner, now)
            for request in [item for item in runner.active if item.finish_at <= now]:
                runner.active.remove(request)
                request.state = "done"
                runner.last_finish = now
                is_changed = True
            if not runner.is_busy and not runner.is_hung and runner.expires_at <= now:
                self._unload(runner, now)
                is_changed = True
        return is_changed

    def _become_ready(self, runner: Runner, now: float) -> None:
        runner.is_ready = True
        runner.last_finish = runner.ready_at
        self._note(runner, now, is_resident=True)
        for request in runner.active:
            self._run(request, now)

    def _fail_load(self, runner: Runner, now: float) -> None:
        for request in runner.active:
            request.state, request.error = "failed", runner.failure
        runner.active.clear()
        self._unload(runner, now)

    def _note(self, runner: Runner, now: float, *, is_resident: bool) -> None:
        if is_resident or runner.is_ready:
            self.history.append(Residency(now, runner.model.name, is_resident))

    def _start_next(self, now: float) -> bool:
        """Starts one waiting request; a cold one that cannot start holds back the cold ones behind it."""
        is_cold_blocked = any(not runner.is_ready for runner in self.runners.values())
        for request in self.waiting:
            runner = self.runners.get(request.model.blob_digest)
            if runner is not None and runner.asked_context == self.wanted_context(request):
                self.waiting.remove(request)
                self._attach(request, runner, now)
                return True
            if is_cold_blocked:
                continue
            if self._has_room(request, now):
                self.waiting.remove(request)
                self._load(request, now)
                return True
            is_cold_blocked = True
        return False

    def wanted_context(self, request: Request) -> int | None:
        """Context the request leads to; None: automatic."""
        asked = request.context or self.default_context
        return None if asked is None else min(asked, request.model.context_length)

    def _has_room(self, request: Request, now: float) -> bool:
        """True when the model may be loaded now; otherwise what is in the way is ended or waited for."""
        same = self.runners.get(request.model.blob_digest)
        if same is not None:
            self._end_when_idle(same, now)
            return False
        if self.pool.releasing:
            return False
        if not self.runners:
            return True
        if len(self.runners) < self.max_runners and self._place(request, allow_partial=False) is not None:
            return True
        self._end_when_idle(self.find_victim(), now)
        return False

    def find_victim(self) -> Runner:
        """The runner that goes first: idle before busy, then shortest keep_alive, then lowest path."""
        return min(
            self.runners.values(), key=lambda item: (item.is_busy, item.keep_alive_s, item.model.blob_digest)
        )

    def _end_when_idle(self, runner: Runner, now: float) -> None:
        """Unloads the runner, after its running requests if it has any."""
        runner.keep_alive_s = 0.0
        if not runner.is_busy and not runner.is_hung:
            self._unload(runner, now)

    def _place(self, request: Request, allow_partial: bool) -> tuple[int, Placement] | None:
        """Context and place of a new copy; an automatic context goes down a step rather than into RAM."""
        wanted = self.wanted_context(request)
        if wanted is not None:
            placement = self.pool.place(request.model, wanted, allow_partial)
            return None if placement is None else (wanted, placement)
        steps = [step for floor, step in AUTOMATIC_CONTEXTS if self.pool.total_vram() >= floor]
        for step in steps:
            context = min(step, request.model.context_length)
            placement = self.pool.place(request.model, context, allow_partial and step == steps[-1])
            if placement is not None:
                return context, placement
        return None

    def _load(self, request: Request, now: float) -> None:
        """Starts a runner for the request."""
        kinds: tuple[FaultKind, ...] = ("oom", "stall", "cpu", "context")
        if any(not runner.is_busy for runner in self.runners.values()):
            kinds += ("evict",)
        fault = self.faults.take(request.model.name, *kinds)
        placed = self._place(request, allow_partial=False) or self._place(request, allow_partial=True)
        if placed is None:
            request.state = "failed"
            request.error = "model requires more system memory than is available"
            return
        context, placement = self._spoil(request, fault, *placed, now)
        pid = self.next_pid()
        seconds = 0.0 if self.is_instant else 1.2 + file_bytes(request.model) / self.load_bytes_s
        if fault == "stall":
            seconds = STALL_LIMIT_S
        runner = Runner(
            request.model, self.wanted_context(request), context, placement, pid, 33000 + pid % 27000,
            now, now + seconds, self.default_keep_alive_s,
            failure={"oom": OOM_TEXT, "stall": STALL_TEXT}.get(fault or "", ""),
        )  # fmt: skip
        self.runners[request.model.blob_digest] = runner
        self.pool.take(placement)
        self._attach(request, runner, now)

    def _spoil(
        self, request: Request, fault: FaultKind | None, context: int, placement: Placement, now: float
    ) -> tuple[int, Placement]:
        """Context and place of a load that goes wrong, as of one that does not."""
        if fault == "context":
            context = min(context // 2, 4096)
            return context, self.pool.place(request.model, context, allow_partial=True) or placement
        if fault == "cpu":
            cards = {card: size // 2 for card, size in placement.card_bytes.items()}
            return context, Placement(cards, placement.size_bytes - sum(cards.values()))
        if fault == "evict":
            self._unload(self.find_victim(), now)
        return context, placement

    def _attach(self, request: Request, runner: Runner, now: float) -> None:
        """Gives the request to the runner."""
        request.runner = runner
        runner.active.append(request)
        if request.keep_alive_s is not None:
            runner.keep_alive_s = math.inf if request.keep_alive_s < 0 else request.keep_alive_s
        request.state = "loading"
        if runner.is_ready:
            self._run(request, now)

    def _run(self, request: Request, now: float) -> None:
        """The runner is ready: the request computes from here on."""
        request.loaded_at = now
        request.finish_at = now + request.work_s
        request.state = "running"

    def _unload(self, runner: Runner, now: float) -> None:
        """Ends a runner; its memory comes back a moment later (0.5 to 1.5 s on real cards)."""
        if runner.is_ready and self.faults.take(runner.model.name, "hang"):
            runner.is_hung = True
            return
        self._note(runner, now, is_resident=False)
        del self.runners[runner.model.blob_digest]
        size_gib = runner.placement.vram_bytes / GIB
        delay = 0.0 if self.is_instant else 0.5 + min(1.0, size_gib / 60)
        self.pool.give_back(runner.placement, now + delay, runner.loaded_share(now))
