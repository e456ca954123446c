"""What the fleet of the pictures did before the first poll, unseen: history, events, who came."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from fleettui.decide.events import events_between
from fleettui.fleet.history import FleetHistory
from fleettui.model.event import Event
from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import FleetSnapshot, HostKeyOffer, LinkStatus, MachineSnapshot
from fleettui.model.unknown import Unknown

HISTORY_S = 3600
HISTORY_AT = 1_770_000_000.0


class PastEvents:
    """A timeline that is over."""

    error: str | None = None

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.events = events

    def subscribe(self, subscriber: Callable[[tuple[Event, ...]], None]) -> Callable[[], None]:
        return lambda: None


def untouched(fleet: FleetSnapshot) -> FleetSnapshot:
    """The fleet as nobody used it while it was read.

    Where time stands still what is left of it does too: a copy's expiry moves from one look to the next, as
    after a request. Of a pinned copy the expiry itself tells when it was used: that stays.
    """
    return replace(fleet, machines=tuple(map(_untouched_machine, fleet.machines)))


def _untouched_machine(machine: MachineSnapshot) -> MachineSnapshot:
    pinned = {copy.name for copy in machine.loaded if copy.is_pinned}
    engines = [
        replace(engine, uses=tuple(use for use in engine.uses if use.name in pinned))
        for engine in machine.engines
    ]
    return replace(machine, engines=tuple(engines))


def past_events(fleet: FleetSnapshot, now: float) -> tuple[Event, ...]:
    """The last two hours, told by the differences between how machines are and how they may have been."""
    found = [event for machine in fleet.machines for event in _events_of(machine, now)]
    return tuple(sorted(found, key=lambda event: event.at))


def _events_of(machine: MachineSnapshot, now: float) -> Iterator[Event]:
    step_s = 60.0 + zlib.crc32(machine.name.encode()) % 1500
    at = now - step_s
    for engine in machine.engines:
        loaded = () if isinstance(engine.loaded, Unknown) else engine.loaded
        for copy in loaded:
            fewer = replace(engine, loaded=tuple(other for other in loaded if other != copy))
            others = tuple(fewer if other is engine else other for other in machine.engines)
            yield from events_between(replace(machine, engines=others), machine, at)
            at -= step_s
    if machine.health != "healthy":
        yield from events_between(replace(machine, health="healthy", reasons=()), machine, at)
    elif step_s < 400:
        gone = replace(
            machine,
            health="offline",
            reasons=(),
            last_seen=at - 95,
            link=LinkStatus("failed", "connect", "no answer on port 22 (timeout)", at - 95, at, machine.name),
        )
        yield from events_between(machine, gone, at - 95)
        yield from events_between(gone, machine, at)


def with_newcomer(fleet: FleetSnapshot, now: float) -> FleetSnapshot:
    """The fleet with a machine that waits for approval, and one whose key has changed."""
    model = fleet.machines[0].machine
    new = HostKeyOffer(
        "ED25519", "SHA256:Vd3yq0mN7YkqkL9dXxZQm1a1l9pR0yV5o0tJ8wq4hkQ", "KX7A-2MPD", (), now + 780
    )
    old = "SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw"
    changed = HostKeyOffer(
        "ED25519", "SHA256:m3Tq8vB1xK5nR7wY2cF4hJ6lP9sD0gZaXeQiUoVtMrE", "9Q2W-LRT4", (old,)
    )
    waiting = []
    for name, trust, offer in (("kiosk", "pending", new), ("lab-7", "key_changed", changed)):
        host = f"{name}.lan"
        machine = replace(model, name=name, hostname=host, config_file=f"machines/{name}.yaml", gpus=None)
        error = "unknown host key" if trust == "pending" else "host key has changed"
        link = LinkStatus("failed", "host key", error, now - 120, None, f"{host}:22", offer)
        waiting.append(MachineSnapshot(machine=machine, trust=trust, link=link))  # type: ignore[arg-type]
    machines = sorted((*fleet.machines, *waiting), key=lambda item: item.name)
    return replace(fleet, machines=tuple(machines))


def recall(history: FleetHistory, fleet: FleetSnapshot) -> None:
    """The hour before the first poll, which nobody has seen: loads come and go around those of now, so that
    trends and graphs have something to draw. At a time of its own: the same picture whenever it is taken."""
    for back in range(HISTORY_S, -1, -2):
        at, moment = HISTORY_AT - back, back / 20
        machines = tuple(as_before(machine, at, moment) for machine in fleet.machines)
        history.record(replace(fleet, taken_at=at, machines=machines))


def as_before(machine: MachineSnapshot, at: float, moment: float) -> MachineSnapshot:
    """The machine as it may have been then."""
    sources = {
        name: status if status.read_at is None else replace(status, read_at=at)
        for name, status in machine.sources.items()
    }
    gpu, cpu = machine.gpu, machine.cpu
    if gpu is not None:
        gpu = replace(gpu, cards=tuple(card_before(card, moment) for card in gpu.cards))
    if cpu is not None and not isinstance(cpu.busy_percent, Unknown):
        swing = math.sin(moment / 3) * math.sin(moment)
        cpu = replace(cpu, busy_percent=min(100.0, cpu.busy_percent * (1 + 4 * max(0.0, swing))))
    return replace(machine, gpu=gpu, cpu=cpu, sources=sources)


def card_before(card: GpuCard, moment: float) -> GpuCard:
    """One that works now had less to do at times, one that rests now had something."""
    busy, power, heat = card.utilisation_percent, card.power_w, card.temperature_c
    if isinstance(busy, Unknown) or isinstance(power, Unknown) or isinstance(heat, Unknown):
        return card
    moment += zlib.crc32(str(card.uuid).encode()) % 500
    swing = math.sin(moment / 4) * math.sin(moment / 1.3) * math.cos(moment / 30)
    then = busy - 70 * max(0.0, swing) if busy > 10 else 130 * max(0.0, swing - 0.2)
    then = min(100.0, max(0.0, then))
    more = then - busy
    return replace(
        card,
        utilisation_percent=round(then),
        power_w=max(20.0, power + more * 2),
        temperature_c=round(heat + more / 4),
    )
