"""One simulated machine: engine, clients, cards and host, moved on together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random

from fleettui.demo.fleet_plan import MachinePlan
from fleettui.demo.gauges import CardGauge, HostCounters
from fleettui.demo.hardware import GIB, MIB
from fleettui.demo.memory_pool import CUDA_CONTEXT_BYTES, MemoryPool
from fleettui.demo.models import CATALOG, ModelSpec, file_bytes
from fleettui.demo.routed_models import make_served
from fleettui.demo.scheduler import Request, Runner, Scheduler
from fleettui.demo.served_model import ServedModel

STEP_S = 1.0
"""Simulated seconds between two movements of the needles."""
TOKENS_S = 30.0
RUNNER_HOST_BYTES = 900 * MIB
"""Main memory of a runner whose model lies on cards."""


@dataclass(frozen=True, slots=True)
class CardProcess:
    """A row of nvidia-smi's process list."""

    card: int
    pid: int
    user: str
    command: str
    name: str
    used_mib: int


@dataclass(slots=True)
class Clinging:
    """A client that asks for a model again when it is gone."""

    times: int = -1
    """How often it still does; below 0: always."""
    gap_s: int = 0
    """How long it takes to notice."""
    gone_s: float = 0.0


class SimulatedMachine:
    """One machine of the simulated fleet; `advance_to` moves it on in simulated seconds."""

    def __init__(self, plan: MachinePlan, seed: int, *, has_traffic: bool = True, is_instant: bool = False):
        self.plan = self.first_plan = plan
        self.now = 0.0
        self.has_traffic = has_traffic
        self.is_busy_forced = False
        """The engine answers 503 to every request that needs a model."""
        self.tokens_s = TOKENS_S
        """Of one request."""
        self.clinging: dict[str, Clinging] = {}
        """Models that a client wants back when they are gone."""
        self.boots = 0
        """Times that its power was lost."""
        self._rng = Random(f"{seed} {plan.name}")
        self._steps = 0
        self._salt = len(plan.name)
        self._next_pid = self._rng.randint(2_100, 9_000)
        self.cards = [CardGauge(kind) for kind in plan.cards]
        self.card_uuids = [card_uuid(plan.name, card) for card in range(len(plan.cards))]
        self.foreign_pids = [self.new_pid() for _ in plan.foreign]
        # Randomness and numbers of their own: the rest of the machine lives as it would without them.
        self.served: list[ServedModel] = [
            make_served(side, Random(f"{seed} {plan.name} {side.kind}"), 1_300 + 7 * place)
            for place, side in enumerate(plan.sides)
        ]
        self.counters = HostCounters(plan.host, self._rng.uniform(2, 90) * 86_400)
        self.counters.start(self._rng)
        self.base_ram_bytes = int(self._rng.uniform(2.2, 5.5) * GIB)
        self.scheduler = Scheduler(
            self._pool(), plan.keep_alive_s, plan.context, self.new_pid, is_instant=is_instant
        )
        self.take_sides_memory()
        self._start()

    def new_pid(self) -> int:
        """The next process id, with the gaps that other programs leave."""
        self._next_pid += self._rng.randint(3, 900)
        return self._next_pid

    def take_sides_memory(self) -> None:
        """What engines beside Ollama hold of the cards now is not Ollama's to give."""
        held: dict[int, int] = {}
        for process in self.plan.foreign:
            held[process.card] = held.get(process.card, 0) + process.mib * MIB
        for served in self.served:
            if served.plan.card is not None and served.mib:
                held[served.plan.card] = held.get(served.plan.card, 0) + served.mib * MIB
        self.scheduler.pool.foreign = held

    def install(self, model: ModelSpec, *, is_there: bool = True) -> None:
        """The model's files come to the disk, or leave it."""
        others = tuple(name for name in self.plan.installed if name != model.name)
        self.plan = replace(self.plan, installed=(*others, model.name) if is_there else others)

    def lose_power(self) -> None:
        """All that ran is gone; counters start anew with the next boot."""
        self.scheduler.lose_everything(self.now)
        for served in self.served:
            served.is_up = True
            served.lose_everything()
        self.take_sides_memory()
        self.boots += 1
        counters = self.counters
        counters.booted_s, counters.busy_jiffies = -self.now, 0.0
        counters.rx_bytes = counters.tx_bytes = 0.0

    def new_salt(self) -> int:
        """Three digits for a time stamp, apart from the simulation's own randomness."""
        self._salt = (self._salt * 617 + 331) % 1000
        return self._salt

    def _pool(self) -> MemoryPool:
        """Memory as the engine sees it."""
        plan = self.plan
        ram = plan.host.memory_kib * 1024 - self.base_ram_bytes - 4 * GIB
        if plan.has_driver_failure:
            return MemoryPool([], ram)
        if plan.is_unified:
            return MemoryPool([ram], ram, is_unified=True)
        cards = [(kind.total_mib - kind.reserved_mib - kind.idle_mib) * MIB for kind in plan.cards]
        return MemoryPool(cards, ram)

    def _start(self) -> None:
        """Brings the resident copies in as if loaded long ago, then settles the needles."""
        is_instant, self.scheduler.is_instant = self.scheduler.is_instant, True
        for start in self.plan.resident:
            request = Request(CATALOG[start.name], keep_alive_s=start.keep_alive_s)
            self.scheduler.submit(request, 0.0)
            if request.runner is not None:
                request.runner.started_at -= start.idle_s + 60
                request.runner.last_finish = -start.idle_s
        self.scheduler.is_instant = is_instant
        for card, gauge in enumerate(self.cards):
            gauge.is_awake = self._holds_memory(card)
            gauge.settle(self.activity_percent(card))

    # --- time

    def advance_to(self, now: float) -> None:
        """Moves on to `now`: events in their order, needles once a step."""
        while True:
            step_at = (self._steps + 1) * STEP_S
            event_at = max(self.now, min(step_at, self.scheduler.next_event_at()))
            if event_at > now:
                break
            self.now = event_at
            self.scheduler.process(event_at)
            if event_at == step_at:
                self._steps += 1
                self._step()
        self.now = max(self.now, now)

    def next_event_at(self) -> float:
        """Simulated seconds of the next event of the engine."""
        return self.scheduler.next_event_at()

    def _step(self) -> None:
        """One step of the needles and of the clients."""
        if self.has_traffic:
            self._ask_as_clients()
        if self.clinging:
            self._ask_again()
        for served in self.served:
            served.step(self.now, STEP_S, self.has_traffic)
        for card, gauge in enumerate(self.cards):
            gauge.is_awake = self._holds_memory(card)
            gauge.step(self.activity_percent(card), STEP_S, self._rng)
        asking = sum(len(runner.active) for runner in self.scheduler.runners.values() if runner.is_ready)
        self.counters.step(
            self.now,
            self._cpu_share() + abs(self._rng.gauss(0, 0.006)),
            self._rng.uniform(2_000, 30_000) + asking * self._rng.uniform(4_000, 60_000),
            self._rng.uniform(1_500, 20_000) + asking * self._rng.uniform(20_000, 240_000),
        )

    def _ask_as_clients(self) -> None:
        """New requests of this step (at most one: gaps are long against a step)."""
        traffic = self.plan.traffic
        if traffic.mean_gap_s <= 0 or self._rng.random() >= STEP_S / traffic.mean_gap_s:
            return
        names, weights = zip(*traffic.models, strict=True)
        name = self._rng.choices(names, weights)[0]
        work = 0.4 if CATALOG[name].is_embedding else self._rng.expovariate(1 / traffic.mean_work_s) + 1
        keep_alive = self._rng.choice(traffic.keep_alives_s)
        runner = self.scheduler.runners.get(CATALOG[name].blob_digest)
        if runner is not None and math.isinf(runner.keep_alive_s):
            keep_alive = None
        self.scheduler.submit(Request(CATALOG[name], keep_alive_s=keep_alive, work_s=work), self.now)

    def _ask_again(self) -> None:
        """Clients who want a model back as soon as it is gone."""
        asked = [request.model.name for request in self.scheduler.waiting]
        for name, client in self.clinging.items():
            if CATALOG[name].blob_digest in self.scheduler.runners or name in asked:
                client.gone_s = 0.0
                continue
            client.gone_s += STEP_S
            if client.times and client.gone_s > client.gap_s:
                client.times -= 1
                self.scheduler.submit(Request(CATALOG[name], work_s=1.0), self.now)

    # --- what it shows

    def _is_computing(self, period_s: float) -> bool:
        return period_s > 0 and self.now % period_s < period_s * 2 / 3

    def _holds_memory(self, card: int) -> bool:
        pool = self.scheduler.pool
        return card in pool.foreign or any(card in place.card_bytes for place in pool.taken)

    def activity_percent(self, card: int) -> float:
        """What the card has to do, before noise."""
        activity = 0.0
        for runner in self.scheduler.runners.values():
            placement = runner.placement
            if runner.is_ready and runner.active and card in placement.card_bytes:
                share = placement.vram_bytes / placement.size_bytes
                activity += 94 / len(placement.card_bytes) if share > 0.999 else 60 * share * share
        for process in self.plan.foreign:
            if process.card == card and self._is_computing(process.period_s):
                activity += process.activity_percent
        activity += sum(38 + 4 * one.running for one in self.served if one.running and one.plan.card == card)
        return min(99.0, activity)

    def _cpu_share(self) -> float:
        """Busy share of all cores, 0-1."""
        cores = 0.35
        for runner in self.scheduler.runners.values():
            if not runner.is_ready:
                cores += 1.6
            elif runner.active:
                part = runner.placement.ram_bytes / runner.placement.size_bytes
                cores += 1.1 + part * self.plan.host.threads * 0.45
        cores += sum(2.5 for process in self.plan.foreign if self._is_computing(process.period_s))
        on_cpu = (one.running for one in self.served if one.plan.card is None)
        cores += sum(running * self.plan.host.threads * 0.15 for running in on_cpu)
        return cores / self.plan.host.threads

    def used_mib_by_card(self) -> list[int]:
        """memory.used of each card: processes, and runners whose memory is not back yet."""
        used = [gauge.kind.idle_mib for gauge in self.cards]
        for item in self.processes():
            used[item.card] += item.used_mib
        for release in self.scheduler.pool.releasing:
            for card in release.placement.card_bytes:
                used[card] += release.placement.process_mib(card, release.share)
        return used

    def processes(self) -> list[CardProcess]:
        """Processes on the cards, as nvidia-smi lists them."""
        found = []
        for runner in self.scheduler.runners.values():
            share = runner.loaded_share(self.now)
            command = runner_command(runner)
            found += [
                CardProcess(card, runner.pid, "ollama", command, "/usr/local/bin/ollama",
                            runner.placement.process_mib(card, share))
                for card in sorted(runner.placement.card_bytes)
            ]  # fmt: skip
        for pid, process in zip(self.foreign_pids, self.plan.foreign, strict=True):
            found.append(
                CardProcess(process.card, pid, process.user, process.command, process.name, process.mib)
            )
        for served in self.served:
            if served.plan.card is not None and served.mib:
                found.append(
                    CardProcess(served.plan.card, served.pid, served.user, served.command, served.program,
                                served.mib)
                )  # fmt: skip
        return found

    def ram_used_bytes(self) -> int:
        """Main memory that is not available: system, runners, parts of models outside VRAM."""
        used = self.base_ram_bytes + len(self.plan.foreign) * 2 * GIB
        used += sum(served.plan.ram_mib for served in self.served if served.is_up) * MIB
        for runner in self.scheduler.runners.values():
            share = runner.loaded_share(self.now)
            used += RUNNER_HOST_BYTES + int(runner.placement.ram_bytes * share)
            if self.plan.is_unified:
                used += int(runner.placement.vram_bytes * share) + CUDA_CONTEXT_BYTES
        return used

    def installed_bytes(self) -> int:
        """Model files on disk."""
        return sum(file_bytes(CATALOG[name]) for name in self.plan.installed)

    def page_cache_bytes(self) -> int:
        """Files in the page cache: the models in use, as far as they fit."""
        wanted = self.installed_bytes()
        room = self.plan.host.memory_kib * 1024 - self.ram_used_bytes() - GIB
        return max(0, min(wanted, room * 3 // 4))


def card_uuid(machine: str, card: int) -> str:
    """UUID of a card: the same for the same machine and index."""
    digest = sha256(f"card {machine} {card}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def runner_command(runner: Runner) -> str:
    """Command line of a runner, as Ollama starts it."""
    return (
        f"/usr/local/bin/ollama runner --ollama-engine --model "
        f"/usr/share/ollama/.ollama/models/blobs/sha256-{runner.model.blob_digest} --port {runner.port}"
    )
