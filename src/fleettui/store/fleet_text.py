"""A fleet snapshot as one text, for another fleettui of the same version: nothing of it is lost.

The first line is the head, each further one a machine; all are sealed as what is stored is, so that a text of
another version is never read as one of this. Machines alone travel in the same form.
"""

from __future__ import annotations

from zlib import crc32

from fleettui.model.catalog import EMPTY_CATALOG, Catalog, CatalogEngine, CatalogModel
from fleettui.model.machine import ConfigProblem
from fleettui.model.placement import PlanRole
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.store.codec import FORMAT, MachineEncoder, decode, decode_machine, encode, seal, unseal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_CATALOG_CLASSES = CatalogModel, CatalogEngine, PlanRole
_NAMES = ";".join(",".join(cls.__slots__) for cls in (FleetSnapshot, Catalog, *_CATALOG_CLASSES))
WIRE_FORMAT = f"{FORMAT:08x}{crc32(_NAMES.encode()):08x}"
"""Equal in two processes that read each other's texts."""


def encode_fleet(fleet: FleetSnapshot, encoder: MachineEncoder) -> str:
    """The whole fleet, its catalog with roles too. `encoder` may be kept between calls."""
    return "\n".join((encode_head(fleet), *machine_lines(fleet.machines, encoder)))


def machine_lines(machines: Iterable[MachineSnapshot], encoder: MachineEncoder) -> list[str]:
    """One text without line breaks for each machine."""
    return [seal(encoder.encode(machine)) for machine in machines]


def encode_head(fleet: FleetSnapshot) -> str:
    """All of it but the machines, without line breaks."""
    catalog = fleet.catalog
    lists = [
        [[getattr(item, name) for name in type(item).__slots__] for item in items]
        for items in (catalog.models, catalog.engines, catalog.roles)
    ]
    return seal(
        encode(
            [
                *(WIRE_FORMAT, fleet.seq, fleet.taken_at, fleet.interval_s, fleet.problems),
                *(fleet.machines_dir, fleet.paused_at, *lists, catalog.file, catalog.roles_file),
            ]
        )
    )


def decode_fleet(text: str) -> FleetSnapshot | None:
    """The snapshot of `encode_fleet`'s text; None for any other. Never raises."""
    head, *lines = text.split("\n")
    machines = decode_machines(lines)
    return None if machines is None else decode_head(head, machines)


def decode_head(text: str, machines: tuple[MachineSnapshot, ...]) -> FleetSnapshot | None:
    """The snapshot of `encode_head`'s text with these machines; None for any other. Never raises."""
    values = decode(unseal(text) or "")
    if not isinstance(values, list) or len(values) != 12 or values[0] != WIRE_FORMAT:
        return None
    _, seq, taken_at, interval_s, problems, folder, paused_at, models, engines, roles, file, roles_file = (
        values
    )
    are_numbers = all(isinstance(value, int | float) for value in (seq, taken_at, interval_s))
    are_texts = all(isinstance(value, str) for value in (folder, file, roles_file))
    if not are_numbers or not are_texts or not isinstance(problems, list):
        return None
    if not all(isinstance(problem, ConfigProblem) for problem in problems):
        return None
    try:
        catalog = Catalog(
            tuple(CatalogModel(*_tuples(item)) for item in models),
            tuple(CatalogEngine(*_tuples(item)) for item in engines),
            file,
            tuple(PlanRole(*_tuples(item)) for item in roles),
            roles_file,
        )
    except TypeError:
        return None
    if catalog == EMPTY_CATALOG:
        catalog = EMPTY_CATALOG  # who compares by identity sees no news
    return FleetSnapshot(seq, taken_at, interval_s, machines, tuple(problems), folder, paused_at, catalog)


def decode_machines(lines: Sequence[str]) -> tuple[MachineSnapshot, ...] | None:
    """The machines of `machine_lines`; None where one of them cannot be read. Never raises."""
    machines: list[MachineSnapshot] = []
    for line in lines:
        machine = decode_machine(unseal(line) or "")
        if machine is None:
            return None
        machines.append(machine)
    return tuple(machines)


def _tuples(value: Any) -> Any:
    """A catalog has no lists: all of them were tuples."""
    return tuple([_tuples(item) for item in value]) if isinstance(value, list) else value
