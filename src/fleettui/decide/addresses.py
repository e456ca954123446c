"""The address of a machine that a script would be given."""

from __future__ import annotations

from fleettui.decide.candidates import engine_address
from fleettui.decide.matching import is_usable_engine
from fleettui.model.readings import EngineReading
from fleettui.model.route import host_and_port
from fleettui.model.snapshot import MachineSnapshot


def script_address(snapshot: MachineSnapshot) -> str:
    """`hostname:port` of its first engine that answers, as `--route` prints it; of the first one declared
    when none does; the host alone where no engine is known."""
    machine = snapshot.machine
    engines = [*filter(is_usable_engine, snapshot.engines), *snapshot.engines]
    engines += [EngineReading(item.kind, item.port, "down") for item in machine.engines]
    if not engines:
        return machine.hostname
    host, port, _ = engine_address(machine, engines[0])
    return host_and_port(host, port)
