"""Stored snapshots: what goes in comes out, and anything odd is no snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.machine import EngineKind, Machine
from fleettui.model.readings import (
    CpuReading,
    DisksReading,
    EngineLoad,
    EngineReading,
    EngineState,
    EngineTraits,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    ModelState,
    ModelTraits,
    NetReading,
    SystemReading,
)
from fleettui.model.snapshot import (
    DrainFlag,
    DrainState,
    LinkStatus,
    MachineSnapshot,
    MaintenanceFlag,
    Reason,
    Severity,
    SourceStatus,
)
from fleettui.model.unknown import Unknown
from fleettui.model.written import WrittenNumber
from fleettui.store import codec
from fleettui.store.codec import MachineEncoder, decode, decode_machine, encode, seal, unseal

DOCUMENT_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["1.10", "1e3"]).map(WrittenNumber),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
MACHINES = st.builds(
    Machine,
    name=st.text(),
    role=st.text(),
    hostname=st.text(),
    document=st.dictionaries(st.text(max_size=4), DOCUMENT_VALUES, max_size=3),
)


def optional(reading: type) -> st.SearchStrategy[Any]:
    return st.none() | st.builds(reading)


def words(literal: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(literal.__args__)


NAMES = st.lists(st.text(max_size=4), max_size=2).map(tuple)
TRAITS = st.none() | st.builds(ModelTraits, aliases=NAMES, adapters=NAMES, capabilities=NAMES)
COPIES = st.builds(LoadedModel, engine=words(EngineKind), state=words(ModelState), traits=TRAITS)

SNAPSHOTS = st.builds(
    MachineSnapshot,
    machine=MACHINES,
    link=st.builds(LinkStatus),
    gpu=optional(GpuReading),
    processes=optional(ProcessesReading),
    cpu=optional(CpuReading),
    memory=optional(MemoryReading),
    disks=optional(DisksReading),
    net=optional(NetReading),
    system=optional(SystemReading),
    engines=st.lists(
        st.builds(
            EngineReading,
            kind=words(EngineKind),
            state=words(EngineState),
            loaded=st.lists(COPIES, max_size=2).map(tuple),
            installed=st.lists(st.builds(InstalledModel, engine=words(EngineKind), traits=TRAITS)).map(tuple),
            traits=optional(EngineTraits),
            load=optional(EngineLoad),
        ),
        max_size=2,
    ).map(tuple),
    sources=st.dictionaries(st.sampled_from(["gpu", "cpu", "ollama", "vllm:8001"]), st.builds(SourceStatus)),
    reasons=st.lists(st.builds(Reason, severity=words(Severity)), max_size=2).map(tuple),
    maintenance=optional(MaintenanceFlag),
    drain=st.none() | st.builds(DrainFlag, state=words(DrainState)),
)

ADA = MachineSnapshot(
    Machine("ada", "gpu-host", "ada.lan"), gpu=GpuReading(), sources={"gpu": SourceStatus("ok", 1.5)}
)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)
@given(SNAPSHOTS)
def test_every_snapshot_comes_back_as_it_was(machine: MachineSnapshot) -> None:
    # repr, not ==: it tells tuples from lists, Unknown reasons apart, and NaN is itself.
    assert repr(decode_machine(encode(machine))) == repr(machine)
    assert MachineEncoder().encode(machine) == encode(machine)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_no_snapshot(text: str | bytes) -> None:
    assert decode_machine(text) is None


@given(st.data())
def test_damaged_text_never_raises(data: st.DataObject) -> None:
    text = encode(ADA)
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 20))
    damaged = text[:at] + data.draw(st.text(alphabet='0129[]{}",:n-', max_size=5)) + text[at + length :]
    found = decode_machine(damaged)
    assert found is None or isinstance(found.machine, Machine)


@pytest.mark.parametrize(
    "text",
    [
        "null", "1", "[]", "{}", '{"": []}', '{"": {}}', '{"": 5}', '{"": [99]}', '{"": ["x"]}', '{"": [-1]}',
        '{"": [1]}', '{"": [null]}', "[" * 100_000, "9" * 100_000,
        encode(ADA.machine), encode(ADA)[:-1], encode(ADA) + "x",
    ],
    ids=range(17),
)  # fmt: skip
def test_odd_text_is_no_snapshot(text: str) -> None:
    assert decode_machine(text) is None


def test_missing_field_is_no_snapshot_even_where_it_has_a_default() -> None:
    value = json.loads(encode(ADA))
    value[""].pop()
    assert decode(json.dumps(value)) is None


def test_section_of_another_kind_is_no_snapshot() -> None:
    wrong: Any = MemoryReading()
    assert decode_machine(encode(replace(ADA, gpu=wrong))) is None


def test_document_may_hold_any_key() -> None:
    document = {"": [6, "x"], "a": {"": "x"}, "n": WrittenNumber("1.10"), "ü": "\x7f\u2028"}
    machine = replace(ADA, machine=replace(ADA.machine, document=document))
    found = decode_machine(encode(machine))
    assert found == machine
    assert found is not None
    assert found.machine.document["n"].text == "1.10"


def test_unknowns_keep_their_reason_and_mappings_their_type() -> None:
    machine = replace(
        ADA, cpu=CpuReading(load=Unknown("no /proc")), sources=MappingProxyType(dict(ADA.sources))
    )
    found = decode_machine(encode(machine))
    assert found is not None
    assert found.cpu == machine.cpu
    assert found.sources == ADA.sources


@given(st.text())
def test_seal(text: str) -> None:
    sealed = seal(text)
    assert unseal(sealed) == text
    assert unseal(sealed + " ") is None
    assert unseal(sealed[1:]) is None
    assert unseal(text) is None
    assert unseal(None) is None


def test_encoder_sees_each_change() -> None:
    encoder = MachineEncoder()
    assert encoder.encode(ADA) == encode(ADA)
    changed = replace(ADA, gpu=GpuReading(warnings=("hot",)), seq=7, last_seen=2.5)
    assert encoder.encode(changed) == encode(changed)
    encoder.forget("ada")
    encoder.forget("nobody")
    assert encoder.encode(ADA) == encode(ADA)


def test_every_dataclass_of_the_model_can_be_stored() -> None:
    from fleettui.model import machine, readings, snapshot

    known = set(codec._CLASSES)
    for module in (machine, readings, snapshot):
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                assert value in known, name


def test_format_follows_the_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_CLASSES", codec._CLASSES[:-1])
    assert codec._checksum() != codec.FORMAT


def test_store_loads_nothing_heavy() -> None:
    code = (
        "import sys, fleettui.store.snapshots\n"
        "heavy = {'pydantic', 'yaml', 'asyncio', 'pathlib', 'threading', 'platformdirs', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    source = str(Path(__file__).resolve().parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
