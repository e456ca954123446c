"""What a drain would do: a class, a target and an order for every copy, several machines planned as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleettui.decide.drain.bay import Bay, Placed, place
from fleettui.decide.drain.choices import Choice, Choices
from fleettui.decide.drain.keep import evicted_last
from fleettui.decide.drain.lines import covered_line, loading_line, lost_line, unmanaged_line
from fleettui.decide.drain.packing import Item, Packing, pack
from fleettui.decide.drain.sight import is_same_model
from fleettui.decide.drain.sources import Found, find_copies, find_copy, source_problem
from fleettui.decide.drain.targets import find_targets, make_bay
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.matching import Match
from fleettui.decide.natural import natural_key
from fleettui.decide.need import Needs
from fleettui.model.busy import idle_s
from fleettui.model.catalog import find_in_catalog
from fleettui.model.drain import (
    LOADING_CLASSES,
    DrainOptions,
    DrainPlan,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.record import replace
from fleettui.model.route import RejectedMachine, Rejection
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Maybe, Unknown

RECENT_S = 3600.0
"""A copy that was used within it, and is nowhere else, goes first."""


def plan_drains(
    fleet: FleetSnapshot, sources: Sequence[str], knowledge: RouteKnowledge, options: DrainOptions, now: float
) -> tuple[DrainPlan, ...]:
    """A plan for each of these machines, in their order; names that are not in the fleet are left out."""
    snapshots = [snapshot for name in dict.fromkeys(sources) if (snapshot := fleet.find(name)) is not None]
    names = [snapshot.machine.name for snapshot in snapshots]
    found = [item for snapshot in snapshots for item in find_copies(snapshot)]
    knowledge = _without_leases_on([item.copy for item in found], knowledge)
    planner = _Planner(fleet, frozenset(names), knowledge, options, now)
    lines, seconds, is_exact = planner.plan(found)
    evicted = evicted_last(fleet, lines, frozenset(names))
    plans = []
    for snapshot in snapshots:
        name = snapshot.machine.name
        others = [
            RejectedMachine(other, (Rejection("draining", f"draining together with {name}"),))
            for other in names
            if other != name
        ]
        own = tuple([line for line in lines if line.copy.machine == name])
        excluded = sorted([*planner.excluded, *others], key=lambda item: natural_key(item.machine))
        plans.append(
            DrainPlan(
                name,
                own,
                tuple(excluded),
                sum([planner.load_bytes.get(line.copy.key, 0) for line in own]),
                seconds.get(name, 0.0),
                fleet.taken_at,
                is_exact,
                source_problem(fleet, snapshot, now),
                evicted.get(name, ()),
            )
        )
    return tuple(plans)


def plan_copy(
    fleet: FleetSnapshot,
    copy: SourceCopy,
    knowledge: RouteKnowledge,
    options: DrainOptions,
    now: float,
    not_on: frozenset[str] = frozenset(),
    planned: Iterable[PlannedCopy] = (),
    relied_on: Iterable[PlannedCopy] = (),
) -> PlannedCopy:
    """One copy anew. `not_on`: machines that failed for it; `planned`: lines whose loads are still to come,
    or under way, and whose room is taken; `relied_on`: lines whose copies elsewhere serve what was drained,
    and never go for this one."""
    held = tuple(
        [lease for line in planned if (lease := _as_lease(line, now)) is not None and line.copy != copy]
    )
    snapshot = fleet.find(copy.machine)
    if snapshot is None:
        return PlannedCopy(copy, "unmanaged", f"{copy.machine} is not declared any more")
    knowledge = _without_leases_on([copy], knowledge)
    knowledge = replace(knowledge, leases=(*knowledge.leases, *held))
    planner = _Planner(fleet, frozenset({copy.machine}), knowledge, options, now, not_on)
    planner.kept = _copies_relied_on(fleet, relied_on)
    lines, _, _ = planner.plan([find_copy(snapshot, copy)])
    return lines[0]


def _without_leases_on(copies: Sequence[SourceCopy], knowledge: RouteKnowledge) -> RouteKnowledge:
    """Whoever was sent somewhere to load one of these, or loads it there, takes the very room that it needs
    there: a worker that died a moment ago, too."""
    names = {canonical_name(copy.name) for copy in copies}
    digests = {copy.digest for copy in copies}
    leases = [item for item in knowledge.leases if item.model not in names and item.digest not in digests]
    return replace(knowledge, leases=tuple(leases))


def _copies_relied_on(fleet: FleetSnapshot, lines: Iterable[PlannedCopy]) -> set[tuple[str, int, str]]:
    """(machine, port, name) of what is resident on the targets of these lines."""
    kept = set()
    for line in lines:
        if line.target is None or (machine := fleet.find(line.target.machine)) is None:
            continue
        for engine in machine.engines:
            for there in () if isinstance(engine.loaded, Unknown) else engine.loaded:
                if is_same_model(line.copy, there, fleet.catalog):
                    kept.add((line.target.machine, engine.port, there.name))
    return kept


def _as_lease(line: PlannedCopy, now: float) -> Lease | None:
    """Room that a planned load takes."""
    target = line.target
    if target is None or target.need is None or line.drain_class not in LOADING_CLASSES:
        return None
    gpu = target.gpus[0] if len(target.gpus) == 1 else None
    model = canonical_name(target.model)
    return Lease(
        f"drain {line.copy.machine} {line.copy.name}", target.machine, target.port, target.engine, model,
        "cold", now, now + 3600, target.need.mib if target.gpus else 0, gpu,
    )  # fmt: skip


class _Planner:
    """The copies of one drain, or of several at once."""

    def __init__(
        self,
        fleet: FleetSnapshot,
        sources: frozenset[str],
        knowledge: RouteKnowledge,
        options: DrainOptions,
        now: float,
        not_on: frozenset[str] = frozenset(),
    ) -> None:
        self.fleet, self.sources, self.knowledge, self.options = fleet, sources, knowledge, options
        self.now, self.not_on = now, not_on
        self.targets, self.excluded = find_targets(fleet, sources, knowledge, options, now)
        self.load_bytes: dict[tuple[str, str, int, str], int] = {}
        """Of files that are loaded, by key of the copy."""
        self.kept: set[tuple[str, int, str]] = set()
        """(machine, port, name) of copies that never go, whatever the plan."""
        self._needs = Needs(fleet, knowledge)
        self._bays: list[Bay | Rejection] = []

    def plan(self, found: list[Found]) -> tuple[tuple[PlannedCopy, ...], dict[str, Maybe[float]], bool]:
        """(lines in the order of the work, seconds by source, whether every packing was tried)."""
        every = [
            Choices(self.fleet, item, self.targets, self._needs, self.knowledge, self.options, self.now)
            for item in found
        ]
        every.sort(key=self._order_key)
        leaders, followers = _split(every)
        covers: dict[int, tuple[int, Match]] = {}
        moving: list[Choices] = []
        lines: dict[int, PlannedCopy] = {}
        for choices in leaders:
            at = self._find_cover(choices)
            wanted = max(1, choices.keep)
            if at is not None:
                covers[id(choices)] = at
            missing = choices.found.missing  # nobody can unload it: it is covered, or stays
            if missing and at is None:
                lines[id(choices)] = unmanaged_line(choices)
            elif at is not None and (missing or self._count_elsewhere(choices) >= wanted):
                lines[id(choices)] = self._covered(choices, at)
            else:
                moving.append(choices)
        packing, picked = self._pack(moving, covers)
        for place_of, choices in enumerate(moving):
            lines[id(choices)] = self._moved(choices, picked[place_of], packing, place_of, covers)
        for choices, leader in followers:
            lines[id(choices)] = self._followed(choices, leader, lines[id(leader)])
        ordered = self._in_order([(choices, lines[id(choices)]) for choices in every])
        return tuple(ordered), self._seconds(ordered), packing.is_exact

    def _order_key(self, choices: Choices) -> tuple[bool, int, tuple[object, ...], tuple[object, ...], int]:
        """Without any other copy and used lately first, then large before small."""
        found = choices.found
        has_other = any(choices.is_resident_on(at) for at in range(len(self.targets)))
        is_recent = True
        if found.engine is not None and found.loaded is not None:
            unused_s = idle_s(found.snapshot, found.engine, found.loaded, self.now)
            is_recent = isinstance(unused_s, Unknown) or unused_s < RECENT_S
        copy = found.copy
        size = 0 if isinstance(copy.size_bytes, Unknown) else copy.size_bytes
        return has_other or not is_recent, -size, natural_key(copy.name), natural_key(copy.machine), copy.port

    def _find_cover(self, choices: Choices) -> tuple[int, Match] | None:
        """Who serves it already: at rest before at work, pinned before what expires, then by name."""
        found = []
        for at, target in enumerate(self.targets):
            match = choices.find_cover(at)
            if match is not None and match.copy is not None:
                is_used = idle_s(target.snapshot, match.engine, match.copy, self.now) == 0.0
                found.append(((is_used, not match.copy.is_pinned, at), at, match))
        return min(found, key=lambda item: item[0])[1:] if found else None

    def _count_elsewhere(self, choices: Choices) -> int:
        """Resident copies that can stand for it."""
        return sum([choices.find_cover(at) is not None for at in range(len(self.targets))])

    def _covered(self, choices: Choices, cover: tuple[int, Match]) -> PlannedCopy:
        lacks = max(0, choices.keep - self._count_elsewhere(choices))
        return covered_line(choices, self.targets[cover[0]], cover[1], self.now, lacks=lacks)

    def _kept(self, covers: dict[int, tuple[int, Match]]) -> set[tuple[str, int, str]]:
        """Copies that must not be evicted: those that cover, and as many as the catalog wants kept."""
        kept = self.kept | {
            (self.targets[at].name, match.engine.port, match.copy.name)
            for at, match in covers.values()
            if match.copy is not None
        }
        counts: dict[str, int] = {}
        for target in self.targets if any(model.keep for model in self.knowledge.catalog.models) else ():
            for engine in target.engines:
                for copy in () if isinstance(engine.loaded, Unknown) else engine.loaded:
                    model = find_in_catalog(self.knowledge.catalog, copy.name)
                    if model is not None and counts.setdefault(model.id, 0) < model.keep:
                        counts[model.id] += 1
                        kept.add((target.name, engine.port, copy.name))
        return kept

    def _pack(
        self, moving: list[Choices], covers: dict[int, tuple[int, Match]]
    ) -> tuple[Packing, list[dict[int, Choice | Rejection]]]:
        """Targets of those that have to be loaded, and what each finds on every target."""
        kept = self._kept(covers) if moving else set()
        self._bays = [make_bay(target, kept, self.now) for target in self.targets] if moving else []
        picked: list[dict[int, Choice | Rejection]] = []
        for choices in moving:
            options: dict[int, Choice | Rejection] = {}
            for at, target in enumerate(self.targets):
                bay = self._bays[at]
                choice = choices.choose(at, target)
                if isinstance(choice, Choice):
                    if isinstance(bay, Rejection):
                        choice = bay
                    elif target.name in self.not_on:
                        choice = Rejection("excluded", "excluded (it failed there)")
                    elif choices.find_cover(at) is not None:
                        choice = Rejection("excluded", "excluded (one copy is there already)")
                options[at] = choice
            picked.append(options)
        empty = Bay((), 0, ())
        items = []
        for choices, options in zip(moving, picked, strict=True):
            size = choices.found.copy.size_bytes
            loads = {at: choice.load for at, choice in options.items() if isinstance(choice, Choice)}
            least = min([load.least_bytes for load in loads.values()], default=0)
            items.append(Item(loads, least or (0 if isinstance(size, Unknown) else size)))
        bays = tuple([empty if isinstance(bay, Rejection) else bay for bay in self._bays])
        return pack(tuple(items), bays, takes_degraded=self.options.accept_degraded), picked

    def _moved(
        self,
        choices: Choices,
        options: dict[int, Choice | Rejection],
        packing: Packing,
        place_of: int,
        covers: dict[int, tuple[int, Match]],
    ) -> PlannedCopy:
        """The line of a copy that was packed, or found no place."""
        at, placed = packing.targets[place_of], packing.placed[place_of]
        if at is not None and placed is not None:
            return self._loading(choices, options, at, placed)
        if id(choices) in covers:  # the catalog wants more copies than find a place
            return self._covered(choices, covers[id(choices)])
        refused: list[RejectedMachine] = [*self.excluded]
        lesser = []
        for at, target in enumerate(self.targets):
            choice = options[at]
            found = choice if isinstance(choice, Rejection) else place(packing.bays[at], choice.load)
            if isinstance(found, Rejection):
                refused.append(RejectedMachine(target.name, (found,), target.age_s))
            else:
                lesser.append((found.quality, -found.bay.free_bytes, at, found))
        if lesser:  # less than at the source, which nobody has accepted
            _, _, at, placed = min(lesser, key=lambda item: item[:3])
            return self._loading(choices, options, at, placed)
        refused.sort(key=lambda item: natural_key(item.machine))
        cold_on, doubts = self._cold_on(choices)
        return lost_line(choices, cold_on, tuple(refused), doubts)

    def _loading(
        self, choices: Choices, options: dict[int, Choice | Rejection], at: int, placed: Placed
    ) -> PlannedCopy:
        choice, target = options[at], self.targets[at]
        assert isinstance(choice, Choice)  # noqa: S101 - only choices are packed
        line = loading_line(
            choices, target, choice, placed, self.knowledge.load_rates.get(target.name), self.now
        )
        size = choice.load.size_bytes
        if choice.load.need is not None and not isinstance(size, Unknown):
            self.load_bytes[choices.found.copy.key] = size
        return line

    def _cold_on(self, choices: Choices) -> tuple[tuple[str, ...], str]:
        """Machines with its files: those in service, else those that are not, with a word on that."""
        names = [target.name for at, target in enumerate(self.targets) if choices.find_files(at)]
        if names:
            return tuple(names), ""
        out = []
        together = self.sources - {choices.found.copy.machine}
        for machine in sorted({*(item.machine for item in self.excluded), *together}, key=natural_key):
            snapshot = self.fleet.find(machine)
            if snapshot is not None and choices.lies_on(snapshot):
                out.append(machine)
        return tuple(out), "out of service now" if out else ""

    def _followed(self, choices: Choices, leader: Choices, line: PlannedCopy) -> PlannedCopy:
        """The same weights on another machine that is drained with it: one copy is moved for both."""
        copy, target = choices.found.copy, line.target
        if line.drain_class == "covered" or target is None or line.drain_class == "degraded":
            return replace(line, copy=copy)
        text = f"will be on {target.machine}, moved from {leader.found.copy.machine}"
        return PlannedCopy(
            copy, "covered", text, target, line.context_there, keep=choices.keep, num_ctx=line.num_ctx,
            follows=leader.found.copy.machine,
        )  # fmt: skip

    def _in_order(self, planned: list[tuple[Choices, PlannedCopy]]) -> list[PlannedCopy]:
        """What is resident elsewhere needs no wait; then loads, what follows them, what stays."""

        def group(line: PlannedCopy) -> int:
            if line.drain_class == "covered":
                return 2 if line.follows else 0
            return 1 if line.drain_class in LOADING_CLASSES else 3

        return sorted([line for _, line in planned], key=group)

    def _seconds(self, lines: list[PlannedCopy]) -> dict[str, Maybe[float]]:
        """By source, until its last load is done: one after the other on a target, targets side by side."""
        clocks: dict[str, Maybe[float]] = {}
        done: dict[str, Maybe[float]] = {}
        for line in lines:
            target = line.target
            if target is None or line.drain_class not in LOADING_CLASSES:
                continue
            before = clocks.get(target.machine, 0.0)
            own = target.eta_s
            after: Maybe[float] = own if isinstance(own, Unknown) else before
            if not isinstance(own, Unknown) and not isinstance(before, Unknown):
                after = round(before + own, 1)
            clocks[target.machine] = after
            last = done.get(line.copy.machine, 0.0)
            if isinstance(last, Unknown) or isinstance(after, Unknown):
                done[line.copy.machine] = last if isinstance(last, Unknown) else after
            else:
                done[line.copy.machine] = max(last, after)
        return done


def _split(every: list[Choices]) -> tuple[list[Choices], list[tuple[Choices, Choices]]]:
    """The copy of each weights with the longest context, and (other, that one) for the rest."""
    groups: dict[object, list[Choices]] = {}
    for choices in every:
        copy = choices.found.copy
        if copy.engine == "process" or choices.found.missing:
            groups[id(choices)] = [choices]
            continue
        digest = None if isinstance(copy.digest, Unknown) else copy.digest
        groups.setdefault((copy.engine, digest, choices.asked.canonical), []).append(choices)
    leaders: list[Choices] = []
    followers: list[tuple[Choices, Choices]] = []
    for group in groups.values():
        leader = max(group, key=_demand)
        leaders.append(leader)
        followers += [(choices, leader) for choices in group if choices is not leader]
    return leaders, followers


def _demand(choices: Choices) -> int:
    context = choices.found.copy.context
    return 0 if isinstance(context, Unknown) else context
