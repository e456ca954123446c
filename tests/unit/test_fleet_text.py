"""Snapshots and events on their way to another fleettui: nothing is lost, nothing else is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from fleettui.config.catalog_folder import load_catalog_files
from fleettui.model.catalog import EMPTY_CATALOG
from fleettui.model.event import Event
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.codec import MachineEncoder
from fleettui.store.event_text import event_row, read_event
from fleettui.store.fleet_text import decode_fleet, decode_machines, encode_fleet, machine_lines
from sample_fleet import sample_fleet

CATALOG = load_catalog_files(str(Path(__file__).resolve().parents[2] / "catalog")).catalog


def whole_fleet() -> FleetSnapshot:
    assert CATALOG.roles
    assert CATALOG.models
    return replace(sample_fleet(), catalog=CATALOG, paused_at=NOW - 5)


@pytest.mark.parametrize("fleet", [whole_fleet(), sample_fleet(), FleetSnapshot(0, 0.0, 2.0)])
def test_a_fleet_arrives_as_it_was(fleet: FleetSnapshot) -> None:
    read = decode_fleet(encode_fleet(fleet, MachineEncoder()))
    assert read == fleet
    assert (fleet.catalog is EMPTY_CATALOG) == (read.catalog is EMPTY_CATALOG)


def test_machines_alone_arrive_too() -> None:
    machines = sample_fleet().machines
    assert decode_machines(machine_lines(machines, MachineEncoder())) == machines


def test_a_text_that_is_not_whole_is_none() -> None:
    text = encode_fleet(whole_fleet(), MachineEncoder())
    head, _, machines = text.partition("\n")
    for damaged in ("", text[:-1], text.replace("ada", "bda", 1), machines, f"{head}\n", f"{text}\nx"):
        assert decode_fleet(damaged) is None


@given(st.text())
def test_any_text_is_none(text: str) -> None:
    assert decode_fleet(text) is None
    assert decode_machines([text]) is None


EVENT = Event(
    NOW, "ada", "loaded", "good", "llama3.1:8b is loaded", {"model": "llama3.1:8b", "gib": 4.9}, "mia@jump",
    "ollama/llama3.1:8b", 2, NOW + 1,
)  # fmt: skip


@pytest.mark.parametrize("event", [EVENT, Event(NOW, "", "file", "bad", "x.yaml is broken")])
def test_an_event_arrives_as_it_was(event: Event) -> None:
    assert read_event(event_row(event)) == event


@pytest.mark.parametrize(
    ("place", "value"), [(0, "now"), (2, "party"), (3, "fine"), (5, []), (6, 1), (8, None), (9, "later")]
)
def test_a_row_of_another_form_is_none(place: int, value: object) -> None:
    row = event_row(EVENT)
    row[place] = value
    assert read_event(row) is None
    assert read_event(row[:-1]) is None
    assert read_event(None) is None
