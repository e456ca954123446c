"""The fleet as placement sees it: what each machine has, whether it takes copies, what is loaded now."""

from __future__ import annotations

from fleettui.model.catalog import EMPTY_CATALOG, Catalog, find_in_catalog
from fleettui.model.gpu import GpuCard, GpuReading, condition_of
from fleettui.model.placement import Capability, PlacementPlan, PlanGpu, PlanNode
from fleettui.model.placement_answers import LoadedCopy
from fleettui.model.profile import KIB_OF_GIB, MIB_OF_GIB, Profile, ProfileGpu, nearest
from fleettui.model.residency import cards_of
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.model.vram import card_memory, has_no_gpu
from fleettui.probes.profile import parse_capability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NO_PROFILE = "no profile"
"""Nobody knows what the machine is made of."""
_BYTES_OF_GIB = 1 << 30
_NO_CAPABILITY = Unknown("the driver does not tell compute capabilities")
_AMD = Unknown("AMD's cards have no compute capability")
_OF_ITS_GPU = Unknown("it is its GPU's memory, and counts there")


def plan_node(machine: MachineSnapshot, profile: Profile | None = None) -> PlanNode:
    """What was read of a machine now; what was not is from its stored profile. Without either: no profile."""
    gpus = _live_gpus(machine, profile)
    if gpus is None and profile is not None and not isinstance(profile.gpus, Unknown):
        gpus = _stored_gpus(profile.gpus, machine.machine.disabled_gpus)
    has_cpu = machine.machine.document.get("cpu_roles") is not False
    return PlanNode(
        machine.name,
        _ram(machine, profile),
        gpus or (),
        has_cpu and (profile is None or profile.takes_cpu_roles),
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
    gpus = None if isinstance(profile.gpus, Unknown) else _stored_gpus(profile.gpus)
    ram = _profile_ram(profile)
    unavailable = NO_PROFILE if gpus is None else ""
    return PlanNode(profile.name, ram, gpus or (), profile.takes_cpu_roles, unavailable)


def profile_notes(profile: Profile) -> tuple[str, ...]:
    """What a plan leaves out of a machine of an inventory. For the warnings of a plan."""
    if isinstance(profile.gpus, Unknown):
        return (f"{profile.name}: its profile does not tell its GPUs, so nothing is planned on it",)
    return tuple(
        f"{profile.name}: nobody knows the memory of GPU {gpu.index}; planned without it"
        for gpu in profile.gpus
        if isinstance(gpu.memory_gb, Unknown)
    )


def why_unavailable(machine: MachineSnapshot) -> str:
    """Why nothing is planned on it: a decision of the operator, or one that is waited for."""
    if machine.trust != "approved":
        return machine.trust.replace("_", " ")
    if machine.drain is not None:
        return "drained" if machine.drain.is_drained else "draining"
    return "" if machine.maintenance is None else "maintenance"


def plan_notes(machine: MachineSnapshot, profile: Profile | None = None) -> tuple[str, ...]:
    """What is odd about its node: left out, or taken from an old profile. For the warnings of a plan."""
    if why_unavailable(machine):
        return ()
    name, reading = machine.name, machine.gpu
    if _live_gpus(machine, profile) is None:
        why = "" if reading is None or reading.problem is None else f" ({reading.problem.text})"
        if profile is None:
            what = "there is no stored profile of it"
        elif isinstance(profile.gpus, Unknown):
            what = "nor are they in its stored profile"
        elif machine.link.state != "up" and not why:
            return ()  # told of every offline node
        else:
            what = "planned by its stored profile"
        return (f"{name}: its GPUs are not known now{why}; {what}",)
    notes = []
    cards = () if reading is None else reading.cards
    for card in cards:
        if card.fault is not None:
            notes.append(f"{name}: GPU {card.index} is faulty ({card.fault.text}); planned without it")
        elif isinstance(_card_mib(machine, card), Unknown):
            notes.append(f"{name}: nobody knows the memory of GPU {card.index}; planned without it")
        elif card.is_mig or card.mig:
            notes.append(f"{name}: MIG is on; GPU {card.index} is planned as the largest of its instances")
    missing = sorted(_by_index(profile).keys() - {card.index for card in cards})
    notes += [f"{name}: GPU {index} of its profile is missing; planned without it" for index in missing]
    return tuple(notes)


def loaded_copies(machine: MachineSnapshot, catalog: Catalog = EMPTY_CATALOG) -> tuple[LoadedCopy, ...]:
    """What is loaded on a machine now, by ids of the catalog where it has them."""
    found = []
    for engine in machine.engines:
        for copy in () if isinstance(engine.loaded, Unknown) else engine.loaded:
            if copy.state not in ("loaded", "loading"):
                continue
            known = find_in_catalog(catalog, copy.name)
            size = copy.size_bytes
            found.append(
                LoadedCopy(
                    machine.name,
                    copy.name if known is None else known.id,
                    cards_of(machine, engine, copy),
                    engine.kind,
                    size if isinstance(size, Unknown) else size / _BYTES_OF_GIB,
                )
            )
    return tuple(found)


def loaded_now(
    machines: Iterable[MachineSnapshot], plan: PlacementPlan, catalog: Catalog = EMPTY_CATALOG
) -> tuple[LoadedCopy, ...]:
    """What is loaded on machines that answer and are planned: what is on others is left alone."""
    left_out = {item.node for item in plan.excluded_nodes}
    return tuple(
        copy
        for machine in machines
        if machine.link.state == "up" and machine.name not in left_out
        for copy in loaded_copies(machine, catalog)
    )


def _live_gpus(machine: MachineSnapshot, profile: Profile | None) -> tuple[PlanGpu, ...] | None:
    """Cards as they were read last, without those at fault; None: nobody knows."""
    reading = machine.gpu
    if reading is None or not reading.cards:
        return () if has_no_gpu(machine) else None
    stored = _by_index(profile)
    disabled = machine.machine.disabled_gpus
    found = []
    for card in reading.cards:
        total = _card_mib(machine, card)
        if card.fault is not None or isinstance(total, Unknown):
            continue
        before = stored.get(card.index)
        found.append(
            PlanGpu(
                card.index,
                known_or(card.name, "GPU"),
                nearest(total, MIB_OF_GIB),
                _capability(reading, card, before),
                card.index in disabled or (before is not None and before.is_disabled),
            )
        )
    return tuple(found)


def _by_index(profile: Profile | None) -> dict[int, ProfileGpu]:
    return {} if profile is None else {gpu.index: gpu for gpu in known_or(profile.gpus, ())}


def _stored_gpus(gpus: tuple[ProfileGpu, ...], disabled: tuple[int, ...] = ()) -> tuple[PlanGpu, ...]:
    return tuple(
        PlanGpu(
            gpu.index,
            known_or(gpu.name, "GPU"),
            int(gpu.memory_gb),
            gpu.compute_cap,
            gpu.is_disabled or gpu.index in disabled,
        )
        for gpu in gpus
        if not isinstance(gpu.memory_gb, Unknown)
    )


def _card_mib(machine: MachineSnapshot, card: GpuCard) -> Maybe[int]:
    """A process sees one MIG instance at most: the largest counts."""
    if card.is_mig or card.mig:
        known = [part.total_mib for part in card.mig if not isinstance(part.total_mib, Unknown)]
        return max(known) if known else Unknown("MIG is on, its instances are not known")
    return card_memory(machine, card).total_mib


def _capability(reading: GpuReading, card: GpuCard, before: ProfileGpu | None) -> Maybe[Capability]:
    """As the driver tells it now, else as the profile of the same card has it."""
    if card.vendor == "amd":
        return _AMD
    condition = condition_of(reading, card)
    told: Maybe[Capability] = _NO_CAPABILITY
    if condition is not None and not isinstance(condition.compute_cap, Unknown):
        told = parse_capability(condition.compute_cap)
    if not isinstance(told, Unknown) or before is None:
        return told
    names = (card.name, before.name)
    is_same = names[0] == names[1] or any(isinstance(name, Unknown) for name in names)
    return before.compute_cap if is_same else told


def _ram(machine: MachineSnapshot, profile: Profile | None) -> Maybe[int]:
    """GiB, as read; else as its profile has it, else as its file says. One memory counts once."""
    cards = () if machine.gpu is None else machine.gpu.cards
    if any(card.is_unified for card in cards):
        return _OF_ITS_GPU
    if machine.memory is not None and not isinstance(machine.memory.usable_kib, Unknown):
        return nearest(machine.memory.usable_kib, KIB_OF_GIB)
    return _whole(machine.machine.ram_gb) if profile is None else _profile_ram(profile)


def _profile_ram(profile: Profile) -> Maybe[int]:
    if any(gpu.is_unified for gpu in known_or(profile.gpus, ())):
        return _OF_ITS_GPU
    return _whole(profile.memory_gb)


def _whole(value: Maybe[float]) -> Maybe[int]:
    return value if isinstance(value, Unknown) else int(value)
