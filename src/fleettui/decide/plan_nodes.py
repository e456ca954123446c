"""The fleet as placement sees it: what each machine has, whether it takes copies, what is loaded now."""

from __future__ import annotations

from fleettui.model.catalog import EMPTY_CATALOG, Catalog, find_in_catalog
from fleettui.model.gpu import GpuCard, GpuReading, condition_of
from fleettui.model.placement import Capability, PlanGpu, PlanNode
from fleettui.model.placement_answers import LoadedCopy
from fleettui.model.profile import KIB_OF_GIB, MIB_OF_GIB, Profile, nearest
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory, has_no_gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_PROFILE = "no profile"
_BYTES_OF_GIB = 1 << 30
_NO_CAPABILITY = Unknown("the driver does not tell compute capabilities")
_DRAINS = {"running": "draining", "blocked": "draining", "drained": "drained"}
"""What a drain that is in force is called; one that is planned, failed or cancelled keeps nothing out."""


def plan_node(machine: MachineSnapshot, profile: Profile | None = None) -> PlanNode:
    """What was read of a machine now; what was not is from its stored profile. Without either: no profile."""
    gpus = _live_gpus(machine)
    stored = None if profile is None else node_of_profile(profile)
    if gpus is None and stored is not None and profile is not None and not isinstance(profile.gpus, Unknown):
        gpus = _with_disabled(stored.gpus, machine.machine.disabled_gpus)
    ram = _live_ram(machine)
    if isinstance(ram, Unknown) and stored is not None:
        ram = stored.memory_gb
    return PlanNode(
        machine.name,
        ram,
        gpus or (),
        machine.machine.document.get("cpu_roles") is not False and (stored is None or stored.cpu_roles),
        why_unavailable(machine) or (NO_PROFILE if gpus is None else ""),
        machine.health == "offline",
    )


def plan_nodes(
    machines: Iterable[MachineSnapshot], profiles: Mapping[str, Profile] | None = None
) -> tuple[PlanNode, ...]:
    """All of a fleet. `profiles`: stored ones by name of the machine."""
    known = profiles or {}
    return tuple(plan_node(machine, known.get(machine.name)) for machine in machines)


def node_of_profile(profile: Profile) -> PlanNode:
    """A machine of an inventory; cards whose memory is not known are left out."""
    if isinstance(profile.gpus, Unknown):
        return PlanNode(
            profile.name, _whole(profile.memory_gb), (), profile.takes_cpu_roles, unavailable=NO_PROFILE
        )
    gpus = tuple(
        PlanGpu(
            gpu.index,
            "GPU" if isinstance(gpu.name, Unknown) else gpu.name,
            int(gpu.memory_gb),
            gpu.compute_cap,
            gpu.is_disabled,
        )
        for gpu in profile.gpus
        if not isinstance(gpu.memory_gb, Unknown)
    )
    return PlanNode(profile.name, _whole(profile.memory_gb), gpus, profile.takes_cpu_roles)


def why_unavailable(machine: MachineSnapshot) -> str:
    """Why nothing is planned on it: a decision of the operator, or one that is waited for."""
    if machine.trust != "approved":
        return machine.trust.replace("_", " ")
    if machine.drain is not None and machine.drain.state in _DRAINS:
        return _DRAINS[machine.drain.state]
    return "" if machine.maintenance is None else "maintenance"


def loaded_copies(machine: MachineSnapshot, catalog: Catalog = EMPTY_CATALOG) -> tuple[LoadedCopy, ...]:
    """What is loaded on a machine now, by ids of the catalog where it has them."""
    found = []
    for engine in machine.engines:
        for copy in () if isinstance(engine.loaded, Unknown) else engine.loaded:
            if copy.state == "stopping":
                continue
            known = find_in_catalog(catalog, copy.name)
            cards = next(
                (
                    place.cards
                    for place in machine.places or ()
                    if place.port == engine.port and place.name == copy.name
                ),
                (),
            )
            size = copy.size_bytes
            found.append(
                LoadedCopy(
                    machine.name,
                    copy.name if known is None else known.id,
                    cards,
                    engine.kind,
                    size if isinstance(size, Unknown) else size / _BYTES_OF_GIB,
                )
            )
    return tuple(found)


def _live_gpus(machine: MachineSnapshot) -> tuple[PlanGpu, ...] | None:
    """Cards as they were read last, without those at fault; None: nobody knows."""
    reading = machine.gpu
    if reading is None or not reading.cards:
        return () if has_no_gpu(machine) else None
    disabled = machine.machine.disabled_gpus
    found = []
    for card in reading.cards:
        total = _card_mib(machine, card)
        if card.fault is not None or isinstance(total, Unknown):
            continue
        found.append(
            PlanGpu(
                card.index,
                "GPU" if isinstance(card.name, Unknown) else card.name,
                nearest(total, MIB_OF_GIB),
                _capability(reading, card),
                card.index in disabled,
            )
        )
    return tuple(found)


def _card_mib(machine: MachineSnapshot, card: GpuCard) -> Maybe[int]:
    """A process sees one MIG instance at most: the largest counts."""
    if card.is_mig or card.mig:
        known = [part.total_mib for part in card.mig if not isinstance(part.total_mib, Unknown)]
        return max(known) if known else Unknown("MIG is on, its instances are not known")
    return card_memory(machine, card).total_mib


def _capability(reading: GpuReading, card: GpuCard) -> Maybe[Capability]:
    """(8, 10) of `8.10`."""
    condition = condition_of(reading, card)
    if condition is None or isinstance(condition.compute_cap, Unknown):
        return _NO_CAPABILITY
    major, _, minor = condition.compute_cap.strip().partition(".")
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return _NO_CAPABILITY
    return int(major), int(minor)


def _live_ram(machine: MachineSnapshot) -> Maybe[int]:
    """GiB, as read; else as its file says."""
    if machine.memory is not None and not isinstance(machine.memory.usable_kib, Unknown):
        return nearest(machine.memory.usable_kib, KIB_OF_GIB)
    return _whole(machine.machine.ram_gb)


def _whole(value: Maybe[float]) -> Maybe[int]:
    return value if isinstance(value, Unknown) else int(value)


def _with_disabled(gpus: tuple[PlanGpu, ...], disabled: tuple[int, ...]) -> tuple[PlanGpu, ...]:
    return tuple(replace(gpu, disabled=True) if gpu.index in disabled else gpu for gpu in gpus)
