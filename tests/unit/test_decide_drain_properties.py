"""What holds for every drain: never onto the source, no room given twice, nothing that serves is dropped."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from drain_fleets import CUDA_GIB, GIB, NOW, make_host
from fleettui.decide.drain.plan import plan_copy, plan_drains
from fleettui.decide.knowledge import NOTHING_KNOWN
from fleettui.model.drain import LOADING_CLASSES, DrainOptions, DrainPlan, PlannedCopy
from fleettui.model.snapshot import DrainFlag, FleetSnapshot, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import known_or

NAMES = tuple(f"m{number}:1b" for number in range(8))
FLAG = MaintenanceFlag("fan", "mia@desk", NOW - 60)
DRAIN = DrainFlag("blocked", "PSU", "mia@desk", NOW - 60)

sizes = st.sampled_from((1.0, 2.0, 3.5, 6.0, 11.0, 20.0))
copies = st.dictionaries(st.sampled_from(NAMES), sizes, max_size=4).map(lambda found: tuple(found.items()))
disks = st.sets(st.sampled_from(NAMES), max_size=8).map(lambda found: tuple(sorted(found)))
cards = st.lists(st.sampled_from((0.5, 4.0, 8.0, 23.0)), min_size=1, max_size=2).map(tuple)


@st.composite
def machines(draw: st.DrawFn, name: str) -> MachineSnapshot:
    made = make_host(name, draw(cards), draw(copies), draw(disks), draw(st.sampled_from((0.0, 16.0))))
    state = draw(st.sampled_from(("", "", "", "", "maintenance", "drain", "offline")))
    if state == "maintenance":
        return replace(made, maintenance=FLAG)
    if state == "drain":
        return replace(made, drain=DRAIN)
    return replace(made, health="offline") if state == "offline" else made


@st.composite
def fleets(draw: st.DrawFn) -> FleetSnapshot:
    sources = [make_host(name, (1.0,), draw(copies), ()) for name in ("ada", "bob")]
    others = [draw(machines(f"host{number}")) for number in range(draw(st.integers(0, 4)))]
    return FleetSnapshot(1, NOW, 2.0, (*sources, *others), machines_dir="machines")


options_of = st.builds(
    DrainOptions,
    allow_pull=st.booleans(),
    accept_degraded=st.booleans(),
    keeps_context=st.booleans(),
)
few = settings(max_examples=60, deadline=None)


def plans_of(fleet: FleetSnapshot, options: DrainOptions) -> tuple[DrainPlan, ...]:
    return plan_drains(fleet, ["ada", "bob"], NOTHING_KNOWN, options, NOW)


def lines_of(plans: tuple[DrainPlan, ...]) -> list[PlannedCopy]:
    return [line for plan in plans for line in plan.copies]


@few
@given(fleets(), options_of)
def test_each_copy_has_one_line_and_no_target_is_a_source_or_out_of_service(
    fleet: FleetSnapshot, options: DrainOptions
) -> None:
    plans = plans_of(fleet, options)
    for plan in plans:
        source = fleet.find(plan.machine)
        assert source is not None
        assert sorted(line.copy.name for line in plan.copies) == sorted(copy.name for copy in source.loaded)
        excluded = {item.machine for item in plan.excluded}
        for line in plan.copies:
            assert (line.target is None) == (line.drain_class in ("last_copy", "cannot"))
            if line.target is None:
                others = {item.machine.name for item in fleet.machines} - {"ada", "bob"}
                assert {item.machine for item in line.rejected} == others
                continue
            machine = fleet.find(line.target.machine)
            assert machine is not None
            assert machine.name not in {"ada", "bob", *excluded}
            assert machine.maintenance is None
            assert machine.drain is None
            assert machine.health != "offline"
            files = {model.name for model in machine.installed}
            assert line.drain_class == "pull" or line.copy.name in files


@few
@given(fleets(), options_of)
def test_no_card_is_overcommitted_and_what_is_dropped_serves_nobody_of_the_plan(
    fleet: FleetSnapshot, options: DrainOptions
) -> None:
    """Free VRAM of all cards and of what is evicted holds every load that lies on GPUs whole; idle copies are
    dropped once, and never one that covers."""
    lines = lines_of(plans_of(fleet, options))
    covering = {
        (line.target.machine, line.target.model)
        for line in lines
        if line.target is not None and line.drain_class == "covered" and not line.follows
    }
    taken: dict[str, float] = {}
    dropped: set[tuple[str, str]] = set()
    for line in lines:
        target = line.target
        if target is None or line.drain_class not in LOADING_CLASSES or target.need is None:
            continue
        if line.drain_class == "degraded" and not options.accept_degraded:
            continue  # shown, not done
        if target.resident_context == line.context_there and target.eta_s == 0:
            continue
        gone = {(target.machine, eviction.model) for eviction in target.evicts}
        assert not gone & dropped
        assert not gone & covering
        dropped |= gone
        freed = sum(known_or(eviction.vram_mib, 0) for eviction in target.evicts)
        need = 0 if line.drain_class == "degraded" else target.need.mib
        taken[target.machine] = taken.get(target.machine, 0) + need - freed
    for name, mib in taken.items():
        machine = fleet.find(name)
        assert machine is not None and machine.gpu is not None  # noqa: PT018
        free = sum(known_or(card.free_mib, 0) for card in machine.gpu.cards)
        own = sum(
            known_or(copy.vram_bytes, 0) // (1 << 20)
            for copy in machine.loaded
            for line in lines
            if line.target is not None and line.target.machine == name and line.copy.name == copy.name
        )  # a copy that is loaded anew with another context goes first
        assert mib <= free + own + 1


@few
@given(fleets(), options_of, st.randoms(use_true_random=False))
def test_the_order_of_machines_and_sources_makes_no_difference(
    fleet: FleetSnapshot, options: DrainOptions, chance: random.Random
) -> None:
    shuffled = list(fleet.machines)
    chance.shuffle(shuffled)
    other = plan_drains(replace(fleet, machines=tuple(shuffled)), ["bob", "ada"], NOTHING_KNOWN, options, NOW)
    assert sorted(other, key=lambda plan: plan.machine) == list(plans_of(fleet, options))


def count(plans: tuple[DrainPlan, ...]) -> tuple[int, int]:
    lines = lines_of(plans)
    lost = sum(line.is_lost for line in lines)
    return lost, sum(line.drain_class == "degraded" for line in lines)


@few
@given(fleets(), options_of)
def test_one_empty_machine_more_never_makes_it_worse(fleet: FleetSnapshot, options: DrainOptions) -> None:
    empty = make_host("zoe", (23.0,), (), NAMES, 16.0)
    more = plans_of(replace(fleet, machines=(*fleet.machines, empty)), options)
    fewer = plans_of(fleet, options)
    assert all(plan.is_exact for plan in more)
    assert count(more)[0] <= count(fewer)[0]
    assert sum(count(more)) <= sum(count(fewer))


@few
@given(fleets(), options_of)
def test_a_copy_alone_finds_a_target_at_least_as_well_as_among_others(
    fleet: FleetSnapshot, options: DrainOptions
) -> None:
    flagged = tuple(
        replace(item, drain=DRAIN) if item.machine.name in ("ada", "bob") else item for item in fleet.machines
    )
    for line in lines_of(plans_of(fleet, options)):
        alone = plan_copy(replace(fleet, machines=flagged), line.copy, NOTHING_KNOWN, options, NOW)
        assert alone.is_lost <= line.is_lost
        assert alone.target is None or alone.target.machine not in ("ada", "bob")


@few
@given(fleets())
def test_loads_on_cards_are_no_larger_than_what_is_free_there(fleet: FleetSnapshot) -> None:
    for line in lines_of(plans_of(fleet, DrainOptions())):
        target = line.target
        if line.drain_class == "move" and target is not None and target.need is not None and target.gpus:
            assert target.need.mib <= known_or(target.free_mib, 0)
            size = known_or(line.copy.size_bytes, 0)
            assert target.need.mib * (1 << 20) >= size + CUDA_GIB * GIB
