"""What one can choose among in the picker, what is typed to narrow it down, and in which order it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fleettui.model.route import EXIT_NO_DATA, RouteCandidate, RouteDecision, ServingEngine, ServingList
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.view.filter_language import FilterError, parse_filter
from fleettui.view.route_text import route_lines
from fleettui.view.text import clean

PickAnswer = RouteCandidate | ServingEngine
_ASKED_CODES = {"timeout", "stale"}
_UNTRUSTED = {"not_approved", "key_changed"}


class Choice(NamedTuple):
    """One machine, or one engine of a machine that declares several."""

    key: str
    """Stable: the machine's name, with the engine's port where it has several."""
    machine: str
    answer: PickAnswer | None
    """What is chosen by it; None: it cannot be."""
    rank: int
    """Place in the present ranking, from 1; 0 where there is none."""
    why: str
    """Why it stands there, or all that speaks against it."""
    is_asked: bool = False
    """It has not answered yet, and is waited for."""


def choices_of(
    found: RouteDecision | ServingList, fleet: FleetSnapshot, *, is_settled: bool
) -> tuple[Choice, ...]:
    """Those that can be chosen, best first where a model was asked for; then the others by name."""
    choices: list[Choice] = []
    if isinstance(found, RouteDecision):
        for rank, candidate in enumerate(found.candidates, 1):
            choices.append(Choice(candidate.machine, candidate.machine, candidate, rank, candidate.reason))
    else:
        several = {item.name for item in fleet.machines if len(item.machine.engines) > 1}
        for engine in found.engines:
            key = f"{engine.machine}:{engine.port}" if engine.machine in several else engine.machine
            choices.append(Choice(key, engine.machine, engine, 0, ""))
    for rejected in found.rejected:
        is_asked = not is_settled and _ASKED_CODES.issuperset(rejected.codes)
        choices.append(Choice(rejected.machine, rejected.machine, None, 0, rejected.text, is_asked))
    return tuple(choices)


def failure_lines(found: RouteDecision | ServingList) -> list[str]:
    """What to tell when there is nothing to choose."""
    if isinstance(found, RouteDecision):
        return route_lines(found)
    lines = [f" - {clean(item.machine)}  {clean(item.text)}" for item in found.rejected]
    if found.rejected and all(_UNTRUSTED.intersection(item.codes) for item in found.rejected):
        return [*lines, "error: no machine is approved; see: fleettui machines list --pending"]
    if found.exit_code == EXIT_NO_DATA:
        return [*lines, "error: no machine gave usable data; check the network"]
    return [*lines, "error: no machine takes requests now"]


class PickOrder:
    """The ranking while it fills in; from the moment one reads or types on, each line keeps its place."""

    def __init__(self) -> None:
        self._held: list[str] | None = None

    def hold(self, choices: Sequence[Choice]) -> None:
        """From now on these stay where they are, until `release`."""
        if self._held is None:
            self._held = [choice.key for choice in choices if choice.answer is not None]

    def release(self) -> None:
        """Back to the ranking."""
        self._held = None

    def arrange(self, choices: Sequence[Choice]) -> list[Choice]:
        """Lines from top to bottom. Once held, one that can be chosen only now comes below those."""
        if self._held is None:
            return list(choices)
        by_key = {choice.key: choice for choice in choices}
        held = set(self._held)
        self._held += [c.key for c in choices if c.answer is not None and c.key not in held]
        first = [by_key[key] for key in self._held if key in by_key]
        held.update(self._held)
        return [*first, *(choice for choice in choices if choice.key not in held)]


def matching_machines(text: str, fleet: FleetSnapshot, now: float) -> frozenset[str] | FilterError:
    """Names of the machines that match a line of the filter language.

    Where none does, letters of the name in that order will do, or a part of an installed model's name."""
    wanted = parse_filter(text)
    if isinstance(wanted, FilterError):
        return wanted
    names = frozenset(item.name for item in fleet.machines if wanted.matches(item, now))
    if names:
        return names
    words = text.casefold().split()
    return frozenset(item.name for item in fleet.machines if all(_is_near(word, item) for word in words))


def _is_near(word: str, snapshot: MachineSnapshot) -> bool:
    letters = iter(snapshot.name.casefold())
    if all(letter in letters for letter in word):
        return True
    return any(word in model.name.casefold() for model in snapshot.installed if model.remote_host is None)
