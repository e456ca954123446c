"""What follows from all machines together: exit code, warnings, the names that are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter

from fleettui.decide.matching import Match
from fleettui.decide.natural import natural_key
from fleettui.model.names import canonical_name
from fleettui.model.record import dataclass, replace
from fleettui.model.route import (
    EXIT_NO_DATA,
    EXIT_NONE_ELIGIBLE,
    EXIT_UNKNOWN_MODEL,
    TIER_PULL,
    RejectedMachine,
    Rejection,
    RouteCandidate,
    RouteDecision,
    RouteWarning,
)
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

_name_of = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Refused:
    """A machine that cannot serve the model."""

    snapshot: MachineSnapshot
    rejections: tuple[Rejection, ...]
    age_s: float | None
    has_data: bool
    is_without: bool
    """All its engines listed their models and none has the asked one."""


def exit_code_of(refused: list[Refused], *, is_new: bool) -> int:
    """Of a fleet that was refused whole: no machine gave usable data: 4, before unknown model: 3, before
    nobody eligible now: 1."""
    if not any(item.has_data for item in refused):
        return EXIT_NO_DATA
    if not is_new or not all(item.is_without for item in refused if item.snapshot.trust == "approved"):
        return EXIT_NONE_ELIGIBLE
    return EXIT_UNKNOWN_MODEL


def is_known(
    found: list[tuple[MachineSnapshot, tuple[Match, ...]]], canonical: str, known_names: Collection[str]
) -> bool:
    """True when the model stands in a machine file, in a list of an engine, or in `known_names`."""
    if any(matches for _, matches in found):
        return True
    declared = [name for snapshot, _ in found for name in snapshot.machine.models]
    return any(canonical_name(name) == canonical for name in [*declared, *known_names])


def all_names(fleet: FleetSnapshot) -> list[str]:
    """Every model name of files, disks and engines, aliases and adapters too; each once."""
    names: dict[str, None] = {}
    for snapshot in fleet.machines:
        names |= dict.fromkeys(snapshot.machine.models)
        for engine in snapshot.engines:
            for models in (engine.installed, engine.loaded):
                if isinstance(models, Unknown):
                    continue
                names |= dict.fromkeys(map(_name_of, models))
                if engine.kind != "ollama":  # which has none
                    further = [model.names for model in models if model.names is not None]
                    names |= dict.fromkeys([name for both in further for part in both for name in part])
    return list(names)


def warnings_of(
    found: list[tuple[MachineSnapshot, tuple[Match, ...]]],
    chosen: RouteCandidate | None,
    canonical: str,
    *,
    is_new: bool = False,
) -> tuple[RouteWarning, ...]:
    """Warnings about the choice: the same tag with other weights elsewhere, a cold copy, a name that is new
    to everybody, an address that nobody elsewhere reaches."""
    warnings = []
    if not found:
        warnings.append(RouteWarning("no_machines", "no machine is declared"))
    warnings += _drift(found)
    warnings += _coldness(chosen, canonical)
    if chosen is not None and is_new:
        warnings.append(RouteWarning("not_known", f"no machine, machine file or catalog knows {canonical}"))
    if chosen is not None:
        for snapshot, _ in found:
            if snapshot.sockets is not None and snapshot.machine.name == chosen.machine:
                warnings += _reach(snapshot, chosen)
    return tuple(warnings)


def _reach(snapshot: MachineSnapshot, chosen: RouteCandidate) -> list[RouteWarning]:
    """The engine listens on the machine's loopback alone. Of an address that the file gives nobody knows."""
    port = None if snapshot.sockets is None else snapshot.sockets.find(chosen.port)
    if port is None or not port.is_loopback or chosen.hostname != snapshot.machine.hostname:
        return []
    if chosen.hostname in ("localhost", "::1") or chosen.hostname.startswith("127."):
        return []
    tunnel = f"ssh -N -L {chosen.port}:localhost:{chosen.port} {chosen.hostname}"
    text = (
        f"{chosen.engine} on {chosen.machine} listens on its loopback alone: {chosen.address} takes no "
        f"connection from elsewhere; {tunnel} makes it localhost:{chosen.port} here"
    )
    return [RouteWarning("loopback", text)]


def _drift(found: list[tuple[MachineSnapshot, tuple[Match, ...]]]) -> list[RouteWarning]:
    """Tags of Ollama that stand for other weights on another machine."""
    differing = {
        (source.name, source.digest)
        for _, matches in found
        for match in matches
        if (source := match.installed or match.copy) is not None
    }
    if len(differing) < 2:  # nearly always
        return []
    by_tag: dict[str, dict[Maybe[str], list[str]]] = {}
    for snapshot, matches in found:
        for match in matches:
            source = match.installed or match.copy
            if (
                match.engine.kind == "ollama"
                and source is not None
                and not isinstance(source.digest, Unknown)
            ):
                machines_of = by_tag.setdefault(canonical_name(source.name), {})
                machines_of.setdefault(source.digest, []).append(snapshot.machine.name)
    warnings = []
    for tag, machines_of in by_tag.items():
        if len(machines_of) > 1:
            parts = [
                f"{str(digest).removeprefix('sha256:')[:12]} on {_some(names)}"
                for digest, names in machines_of.items()
            ]
            text = f"{tag} differs between machines: " + ", ".join(parts)
            warnings.append(RouteWarning("digest_drift", text))
    return warnings


def reject_unreachable(decision: RouteDecision, reasons: Mapping[str, str]) -> RouteDecision:
    """The decision without the machines whose address cannot be reached from here; `reasons` by machine."""
    gone = [
        RejectedMachine(
            item.machine,
            (Rejection("not_reachable", f"not_reachable {item.address}: {reasons[item.machine]}"),),
            item.age_s,
        )
        for item in decision.candidates
        if item.machine in reasons
    ]
    if not gone:
        return decision
    kept = tuple(item for item in decision.candidates if item.machine not in reasons)
    chosen = kept[0] if kept else None
    warnings = [warning for warning in decision.warnings if warning.code not in ("cold", "loopback")]
    return replace(
        decision,
        chosen=chosen,
        candidates=kept,
        rejected=tuple(sorted([*decision.rejected, *gone], key=lambda item: natural_key(item.machine))),
        exit_code=EXIT_NONE_ELIGIBLE if chosen is None else decision.exit_code,
        digest=Unknown("nothing chosen") if chosen is None else chosen.digest,
        warnings=(*warnings, *_coldness(chosen, decision.canonical)),
    )


def _coldness(chosen: RouteCandidate | None, canonical: str) -> list[RouteWarning]:
    """A cold choice says so."""
    if chosen is None or chosen.is_resident:
        return []
    text = f"cold: {canonical} is not loaded on {chosen.machine}, the first request waits until it is"
    if chosen.tier == TIER_PULL:
        text = f"cold: {chosen.machine} has to pull {canonical} first"
    return [RouteWarning("cold", text)]


def _some(names: list[str]) -> str:
    """Up to three names, then a count."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
