"""Who is asked what a model is made of: each digest once, never in vain twice, never where it must not be."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import (
    NOW,
    digest_of,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_snapshot,
)
from fleettui.fleet import model_shapes
from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.model_shapes import ShapeAsker, ShapeBook
from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer
from fleettui.store.database import Store
from fleettui.store.model_shapes import load_shapes

BODY = json.dumps({"model_info": {"general.architecture": "llama", "llama.block_count": 32}}).encode()
OLLAMA = EngineEndpoint("ollama", 11434)
SMALL, BIG = "llama3.1:8b", "llama3.1:70b"


class StubLink:
    """Answers as it is told to, and notes who was asked for what."""

    def __init__(self, name: str, asked: list[tuple[str, str]], answers: dict[str, object]) -> None:
        self._name, self._asked, self._answers = name, asked, answers

    async def post(self, port: int, path: str, body: bytes, **_: Any) -> HttpAnswer:
        question = json.loads(body)
        assert (port, path, question["verbose"]) == (11434, "/api/show", True)
        self._asked.append((self._name, question["model"]))
        answer = self._answers.get(self._name, BODY)
        if isinstance(answer, Exception):
            raise answer
        status = 200 if answer == BODY else 404
        return HttpAnswer(status, (), answer, NOW)  # type: ignore[arg-type]


def holder(name: str, *models: str, **changes: Any) -> MachineSnapshot:
    engine = replace(make_engine(loaded=(), installed=tuple(map(make_installed, models))), **changes)
    machine = make_machine(name, engines=(OLLAMA,))
    return make_snapshot(name, machine=machine, engines=(engine,))


class Fleet:
    """Machines with links, and an asker over them."""

    def __init__(self, state: Path, *machines: MachineSnapshot, **answers: object) -> None:
        self.asked: list[tuple[str, str]] = []
        self.pollers: dict[str, Any] = {
            item.name: SimpleNamespace(
                is_paused=False,
                open_link=StubLink(item.name, self.asked, answers),
                record=SimpleNamespace(engines={OLLAMA: EngineRecord(OLLAMA, [OLLAMA])}),
            )
            for item in machines
        }
        bus = SnapshotBus(make_fleet(*machines))
        self.asker = ShapeAsker(ShapeBook(str(state)), bus, self.pollers, lambda: NOW)

    async def ask(self, *names: str) -> None:
        await self.asker.ask_for({digest_of(name) for name in names})

    @property
    def known(self) -> set[str]:
        return set(self.asker.book.shapes)


async def test_each_digest_once_in_the_fleet_and_in_all_runs(tmp_path: Path) -> None:
    machines = (holder("ada", SMALL, BIG), holder("bora", SMALL))
    fleet = Fleet(tmp_path, *machines)
    await fleet.ask(SMALL, BIG)
    await fleet.ask(SMALL, BIG)
    assert sorted(fleet.asked) == [("ada", BIG), ("ada", SMALL)]
    await fleet.asker.close()
    again = Fleet(tmp_path, *machines)
    await again.ask(SMALL, BIG)
    assert (again.asked, again.known) == ([], fleet.known)
    await again.asker.close()


async def test_an_engine_that_no_file_names_is_asked_too(tmp_path: Path) -> None:
    found = holder("ada", SMALL)
    fleet = Fleet(tmp_path, replace(found, machine=make_machine("ada", engines=())))
    await fleet.ask(SMALL)
    assert (fleet.asked, fleet.known) == ([("ada", SMALL)], {digest_of(SMALL)})
    await fleet.asker.close()


@pytest.mark.parametrize(
    "failure",
    [HttpFailure("timeout", "no answer within 60 s"), b'{"error":"model not found"}', b"<html>"],
)
async def test_another_machine_is_asked_and_none_twice(tmp_path: Path, failure: object) -> None:
    fleet = Fleet(tmp_path, holder("ada", SMALL), holder("bora", SMALL), ada=failure)
    await fleet.ask(SMALL)
    assert fleet.asked == [("ada", SMALL), ("bora", SMALL)]
    assert fleet.known == {digest_of(SMALL)}
    broken = Fleet(tmp_path / "other", holder("ada", SMALL), ada=failure)
    await broken.ask(SMALL)
    await broken.ask(SMALL)
    assert broken.asked == [("ada", SMALL)]
    assert broken.asker.failures[digest_of(SMALL), "ada"]
    await fleet.asker.close()
    await broken.asker.close()


CLOUD = replace(make_installed("big:cloud"), remote_host="https://ollama.com")


@pytest.mark.parametrize(
    "changes",
    [{"path": "remote"}, {"state": "down"}, {"kind": "vllm"}, {"installed": (CLOUD,)}],
)
async def test_who_is_never_asked(tmp_path: Path, changes: dict[str, Any]) -> None:
    fleet = Fleet(tmp_path, holder("ada", SMALL, **changes))
    await fleet.ask(SMALL, "big:cloud")
    assert fleet.asked == []
    await fleet.asker.close()


async def test_nobody_while_the_operator_paused_or_there_is_no_connection(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, holder("ada", SMALL), holder("bora", SMALL))
    fleet.pollers["ada"].is_paused = True
    fleet.pollers["bora"].open_link = None
    await fleet.ask(SMALL)
    assert fleet.asked == []
    fleet.pollers["ada"].is_paused = False
    await fleet.ask(SMALL)
    assert fleet.asked == [("ada", SMALL)]
    await fleet.asker.close()


async def test_resident_models_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_shapes, "LOOK_S", 0.0)
    monkeypatch.setattr(model_shapes, "PAUSE_S", 0.0)
    busy = holder("bora", "qwen3:8b", BIG)
    engine: EngineReading = replace(busy.engines[0], loaded=(make_copy(BIG),))
    fleet = Fleet(tmp_path, holder("ada", SMALL), replace(busy, engines=(engine,)))
    fleet.asker.start()
    async with asyncio.timeout(20):
        while len(fleet.known) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert fleet.asked[0] == ("bora", BIG)
    await fleet.asker.close()


async def test_without_a_database_it_is_known_for_this_run(tmp_path: Path) -> None:
    state = tmp_path / "file"
    state.write_text("no folder")
    fleet = Fleet(state, holder("ada", SMALL))
    await fleet.ask(SMALL)
    assert fleet.known == {digest_of(SMALL)}
    assert "not kept" in (fleet.asker.book.error or "")
    await fleet.asker.close()


async def test_what_is_kept_is_the_shape(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, holder("ada", SMALL))
    await fleet.ask(SMALL)
    await fleet.asker.close()
    with Store.open(str(tmp_path)) as store:
        kept = load_shapes(store, [digest_of(SMALL)])
    assert kept[digest_of(SMALL)].layers == 32
