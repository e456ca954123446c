"""What a snapshot shows of a copy that is drained: is it there, and who may stand for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, digest_of, make_copy, make_engine, make_fleet, make_machine, make_snapshot
from fleettui.decide.drain.sight import (
    find_copy,
    find_cover,
    is_empty,
    presence_of,
    shortfall_of,
    target_problem,
)
from fleettui.model.drain import DrainOptions, PlannedCopy, SourceCopy
from fleettui.model.machine import EngineEndpoint
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import DrainFlag, LinkStatus, MachineSnapshot, MaintenanceFlag, SourceStatus
from fleettui.model.sockets import ListeningPort, SocketsReading
from fleettui.model.unknown import Unknown

MODEL = "qwen3:8b"
OPTIONS = DrainOptions()
HERE = make_copy(MODEL, gib=6)
COPY = SourceCopy("ada", "ollama", 11434, MODEL, digest_of(MODEL), 6 << 30, 6 << 30, 32768, NOW + 240)
LINE = PlannedCopy(COPY, "covered")


def machine(name: str = "bora", *loaded: Any, **changes: Any) -> MachineSnapshot:
    return replace(make_snapshot(name, loaded=list(loaded)), **changes)


def cover_of(
    *machines: MachineSnapshot, options: DrainOptions = OPTIONS, line: PlannedCopy = LINE
) -> str | None:
    found = find_cover(make_fleet(machine("ada", HERE), *machines), line, "zoe", options)
    return None if found is None else found.machine


def test_the_same_weights_on_a_machine_in_service_cover() -> None:
    assert cover_of(machine("bora", HERE), machine("zoe", HERE)) == "zoe", "the preferred one first"
    assert cover_of(machine("bora", HERE)) == "bora"
    assert cover_of(machine("bora", replace(HERE, name="mine:latest"))) == "bora", "by another name"
    assert cover_of() is None, "not the machine itself"


@pytest.mark.parametrize(
    "changes",
    [
        {"drain": DrainFlag("planned", "PSU", "ada", NOW)},
        {"drain": DrainFlag("cancelled", "PSU", "ada", NOW)},
        {"maintenance": MaintenanceFlag(None, "ada", NOW)},
        {"trust": "key_changed"},
        {"link": LinkStatus("failed")},
    ],
)
def test_who_is_out_of_service_covers_nobody(changes: dict[str, Any]) -> None:
    assert cover_of(machine("bora", HERE, **changes)) is None
    assert target_problem(make_fleet(machine("bora", HERE, **changes)), "bora")


def test_an_old_answer_covers_nobody() -> None:
    old = machine("bora", HERE)
    late = {**old.sources, "ollama": SourceStatus("late", NOW - 20, NOW - 15)}
    assert cover_of(replace(old, sources=late)) is None


@pytest.mark.parametrize(
    "there",
    [
        replace(HERE, digest=digest_of("other")),
        replace(HERE, state="loading"),
        replace(HERE, state="stopping"),
        replace(HERE, context=4096),
        replace(HERE, vram_bytes=3 << 30),
    ],
)
def test_a_lesser_copy_covers_nobody(there: Any) -> None:
    assert cover_of(machine("bora", there)) is None


def test_a_lesser_copy_covers_where_that_was_shown_or_accepted() -> None:
    small = replace(HERE, context=4096)
    assert cover_of(machine("bora", small), options=DrainOptions(accept_degraded=True)) == "bora"
    target = RouteCandidate("bora", "bora.lan", 11434, "http://bora.lan:11434", "ollama", 4, "", MODEL)
    shown = PlannedCopy(COPY, "move", "", target, 4096)
    assert cover_of(machine("bora", small), line=shown) == "bora"
    assert cover_of(machine("zoe", small), line=shown) is None, "shown of bora, not of zoe"
    assert cover_of(machine("bora", small), line=replace(shown, drain_class="degraded")) is None
    partly = replace(COPY, vram_bytes=3 << 30)
    assert shortfall_of(partly, replace(HERE, vram_bytes=3 << 30), OPTIONS) == "", "as it was at the source"


def test_another_kind_of_engine_serves_no_client_of_this_one() -> None:
    other = make_engine(kind="llamacpp", port=8080, loaded=[replace(HERE, engine="llamacpp")])
    bora = replace(machine("bora"), engines=(other,), sources={"llamacpp": SourceStatus("ok", NOW)})
    assert cover_of(bora) is None


def test_a_copy_is_there_gone_or_nobody_knows() -> None:
    ada = machine("ada", HERE)
    assert presence_of(ada, COPY) == "resident"
    assert presence_of(machine("ada"), COPY) == "gone"
    assert presence_of(replace(ada, link=LinkStatus("failed")), COPY) == "unknown"
    assert presence_of(None, COPY) == "unknown"
    asleep = replace(HERE, state="sleeping")
    assert presence_of(machine("ada", asleep), COPY) == "gone", "it holds no memory"
    assert find_copy(machine("ada", asleep), COPY) is None


def test_an_engine_whose_port_is_closed_holds_nothing() -> None:
    down = make_engine(state="down", error="nothing listens there")
    down = replace(down, loaded=Unknown("down"))
    ada = replace(machine("ada"), engines=(down,))
    read = {**ada.sources, "sockets": SourceStatus("ok", NOW)}
    assert presence_of(ada, COPY) == "unknown", "an error 500 is no empty engine"
    closed = replace(ada, sockets=SocketsReading((ListeningPort(22, False),)), sources=read)
    assert presence_of(closed, COPY) == "gone"
    assert is_empty(closed) is True
    hung = replace(closed, sockets=SocketsReading((ListeningPort(11434, False),)))
    assert presence_of(hung, COPY) == "unknown"
    assert isinstance(is_empty(hung), Unknown)
    elsewhere = make_machine("ada", engines=(EngineEndpoint("ollama", 11434, "http://gate.lan"),))
    assert presence_of(replace(closed, machine=elsewhere), COPY) == "unknown"


def test_a_machine_is_empty_when_no_engine_holds_anything() -> None:
    assert is_empty(machine("ada")) is True
    assert is_empty(machine("ada", HERE)) is False
    assert isinstance(is_empty(replace(machine("ada"), link=LinkStatus("connecting"))), Unknown)
