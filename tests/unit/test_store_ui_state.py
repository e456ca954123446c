"""What the dashboard remembers: by fleet and screen, whatever the state file is like, never an error."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from fleettui.fleet.ui_state import UiState
from fleettui.store.database import BUSY_TIMEOUT_S, FILE_NAME, Store
from fleettui.store.ui_state import load_parts, save_parts
from fleettui.tui.memory import Memory, flag_in, flags_in, text_in, texts_in

FLEET = "/etc/fleet"
SCHEMA = Path(__file__).resolve().parents[2] / "src/fleettui/store/schema"
PARTS = {"app": {"screen": "fleet"}, "fleet": {"filter": "free>24 | tag:é\udc80", "opened": {"ada": True}}}


def test_parts_come_back_and_fleets_never_mix(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Store.open(str(tmp_path / "state")) as store:
        save_parts(store, str(tmp_path / "link"), PARTS)
    with Store.open(str(tmp_path / "state")) as store:
        assert load_parts(store, str(tmp_path / "real")) == PARTS
        assert load_parts(store, FLEET) == {}


def test_a_part_replaces_itself_and_leaves_the_others(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_parts(store, FLEET, PARTS)
        save_parts(store, FLEET, {"fleet": {"sort": "vram"}})
        assert load_parts(store, FLEET) == {"app": {"screen": "fleet"}, "fleet": {"sort": "vram"}}


def test_what_is_no_object_is_left_out(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_parts(store, FLEET, PARTS)
        for part, contents in (("list", "[1]"), ("broken", "{"), ("bytes", b"\xff"), ("deep", "[" * 100_000)):
            store.connection.execute("INSERT INTO ui_state VALUES (?, ?, ?)", (FLEET, part, contents))
        assert load_parts(store, FLEET) == PARTS


async def test_without_a_file_there_is_nothing_and_none_is_made(tmp_path: Path) -> None:
    state = UiState(str(tmp_path / "state"), FLEET)
    assert await state.load() == {}
    assert state.error is None
    assert not (tmp_path / "state").exists()


async def test_the_file_of_an_older_fleettui_is_read_as_empty_and_brought_up_to_date(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / FILE_NAME)
    for number, file in enumerate(sorted(SCHEMA.glob("*.sql"))[:4], 1):
        old.executescript(file.read_text())
        old.execute(f"PRAGMA user_version={number}")
    old.close()
    state = UiState(str(tmp_path), FLEET)
    assert await state.load() == {}
    assert await state.save(PARTS)
    assert await state.load() == PARTS


async def test_a_broken_file_is_told_and_no_error_comes_out(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    state = UiState(str(tmp_path), FLEET)
    assert await state.load() == {}
    assert state.error is not None
    assert "not remembered" in state.error
    assert FILE_NAME in state.error
    assert not await state.save(PARTS)
    (tmp_path / FILE_NAME).unlink()
    assert await state.save(PARTS)
    assert state.error is None


async def test_a_busy_file_fails_within_its_timeout_and_the_loop_goes_on(tmp_path: Path) -> None:
    state = UiState(str(tmp_path), FLEET)
    assert await state.save({"app": {}})
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        saving = asyncio.ensure_future(state.save(PARTS))
        for _ in range(5):
            await asyncio.sleep(0)  # the loop is free
        assert not saving.done()
        assert not await asyncio.wait_for(saving, 10 * BUSY_TIMEOUT_S)
        assert state.error is not None
        assert await state.load() == {"app": {}}, "reading waits for nobody"
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert await state.save(PARTS)


# In memory


def test_only_what_changed_is_to_be_stored_and_only_once() -> None:
    memory = Memory({"fleet": {"sort": "vram"}})
    memory.note("fleet", sort="vram")
    assert memory.take_changes() == {}
    memory.note("fleet", filter="free>24")
    memory.note("app", screen="fleet")
    assert memory.take_changes() == {
        "app": {"screen": "fleet"}, "fleet": {"sort": "vram", "filter": "free>24"}
    }  # fmt: skip
    assert memory.take_changes() == {}


def test_what_could_not_be_stored_is_still_to_be_in_its_newest_state() -> None:
    memory = Memory()
    memory.note("fleet", sort="vram")
    failed = memory.take_changes()
    memory.note("fleet", sort="age")
    memory.give_back(failed)
    assert memory.take_changes() == {"fleet": {"sort": "age"}}


def test_values_of_the_wrong_kind_count_as_none() -> None:
    part = {"filter": 7, "descending": "yes", "filters": ["a", 1, None], "opened": {"ada": True, "bo": "x"}}
    assert text_in(part, "filter") == ""
    assert text_in(part, "gone", "x") == "x"
    assert flag_in(part, "descending") is False
    assert flag_in(part, "gone", None) is None
    assert texts_in(part, "filters") == ["a"]
    assert texts_in(part, "filter") == []
    assert flags_in(part, "opened") == {"ada": True}
    assert flags_in(part, "filters") == {}
