"""How many copies the catalog wants to stay resident, and how many do."""

from __future__ import annotations

from fleettui.decide.drain.sight import holds_memory, is_out_of_service, is_same_model, lists_now
from fleettui.model.catalog import Catalog
from fleettui.model.drain import SourceCopy
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown


def count_resident(fleet: FleetSnapshot, copy: SourceCopy, catalog: Catalog) -> int:
    """Copies of the model, on any engine, beside this machine's: loaded, on machines in service that answer.

    A copy may be unloaded while that is no less than `keep` of its model.
    """
    count = 0
    for machine in fleet.machines:
        if machine.machine.name == copy.machine or is_out_of_service(machine):
            continue
        for engine in machine.engines:
            if isinstance(engine.loaded, Unknown) or not lists_now(machine, engine):
                continue
            count += sum([
                there.state == "loaded" and holds_memory(there) and is_same_model(copy, there, catalog)
                for there in engine.loaded
            ])  # fmt: skip
    return count
