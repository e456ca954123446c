"""The order in which roles are placed, and whose GPUs a sharing role stands on."""

from __future__ import annotations

from fleettui.model.placement import PlanRole
from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Queue:
    """Roles in the order in which they are placed."""

    roles: tuple[PlanRole, ...]
    """Without those that are switched off."""
    switched_off: tuple[str, ...]
    roots: Mapping[str, str]
    """Of sharing roles: the role at the end of the chain; empty where the chain has no end."""


def build_queue(roles: Iterable[PlanRole]) -> Queue:
    """By priority, then place in the file; a role whose target would come later stands directly after it."""
    given = [
        role
        for _, role in sorted(
            enumerate(roles), key=lambda item: (item[1].priority, item[1].position, item[0])
        )
    ]
    by_name = {role.name: role for role in given}
    waiting: dict[str, list[PlanRole]] = {}
    done: dict[str, PlanRole] = {}

    def place(role: PlanRole) -> None:
        stack = [role]
        while stack:
            one = stack.pop()
            done[one.name] = one
            stack += reversed(waiting.pop(one.name, []))

    for role in given:
        target = role.share_with
        if target is not None and target in by_name and target not in done:
            waiting.setdefault(target, []).append(role)
        else:
            place(role)
    # Roles that share in a circle: the catalog refuses them; here they are unplaced, not lost.
    for stuck in [role for role in given if role.name not in done]:
        done[stuck.name] = stuck
    ordered = tuple(done.values())
    return Queue(
        tuple(role for role in ordered if role.count > 0),
        tuple(role.name for role in ordered if role.count <= 0),
        {role.name: _root(role, by_name) for role in ordered if role.share_with is not None},
    )


def _root(role: PlanRole, by_name: Mapping[str, PlanRole]) -> str:
    seen = {role.name}
    name = role.share_with
    while name is not None and name not in seen:
        target = by_name.get(name)
        if target is None:
            return ""
        if target.share_with is None:
            return name
        seen.add(name)
        name = target.share_with
    return ""
