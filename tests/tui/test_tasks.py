"""docs/tasks.md: what an operator wants to know is on the screen after the keys that the page names."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from drain_desk import FakeDrainDesk
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeEvents, FakeService, sample_machines

from fleettui.config.machine_folder import MachineFiles
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.history import FleetHistory
from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.record import MachineRecord
from fleettui.model.catalog import Catalog
from fleettui.model.event import Event
from fleettui.model.gpu import GpuProcess, ProcessesReading
from fleettui.model.placement import PlanRole
from fleettui.model.snapshot import SourceStatus
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
KEYS = {".": "full_stop", "?": "question_mark", "Enter": "enter", "Tab": "tab", "Shift+Tab": "shift+tab"}
SEEN = {
    "Which machine has most free VRAM?": r"VRAM free ▾[^\n]*\n[^\n]*hopper",
    "Who uses this GPU?": r"0 RTX 4090[^\n]*llama3.1:70b[^\n]*mia: python",
    "Who uses any GPU?": r"0 RTX A6000[^\n]*qwen2.5:32b",
    "Why is a machine degraded?": r"bora[^\n]*degraded[^\n]*\n[^\n]*GPU 1 is declared and not there",
    "What is loaded where?": r"llama3.1:70b[^\n]*39.6 GiB[^\n]*●",
    "Which copy expires next, and where?": r"next to expire phi3:mini on app-host in 1m",
    "What happened last night?": r"bora[^\n]*degraded since GPU 1 went",
    "Has this machine been busy?": r"(?s)last \d+ min.*[▁-█]{20}",
    "What does its GPU driver say?": r"last 15 minutes",
    "What is installed there that nobody declared?": r"phi3:mini\s+installed, not declared",
    "Which machines are in trouble?": r"health ▴[^\n]*\n[^\n]*dora +▲ unhealthy(.*\n){2}.*pve52 +✗ offline",
    "Who is new, and is it the right one?": r"(?s)SHA256:Vd3yq0mN7YkqkL9dXxZQm1a1l9pR0yV5.*KX7A-2MPD",
    "Take this machine out of service": r"(?s)ada[^\n]*⚑.*u undoes",
    "What if I had to reboot this machine?": r"MOVE +llama3.1:70b +hopper GPU 0",
    "Where should I send llama3.1:70b now?": r"(?s)Route  llama3.1:70b .*1  ada +0 ready +now.*offline: no",
    "Where do the roles of the catalog belong?": r"hopper +0 H100[^\n]*chat 40",
    "What has no place, and what would help?": r"(?s)✗ huge  1 copy.*would fit: with one more GPU of 500 GB",
    "Can the fleet do without this machine?": r"what if: without ada\n(.*\n)+.*✗ tts  1 copy without a place",
    "The address for a client": r"ada\.example\.net:11434",
    # Here is no state folder, so it is refused; test_shell_key opens one.
    "A shell there": r"kept in the state folder, and there\s+▌\s+is none",
    "Its figures for a script": r'"name": "ada"',
    "Which keys are there now?": r"Everything known of the machine under the cursor",
}
TO_PLAN = Catalog(
    roles=(
        PlanRole("chat", min_vram_gb=40, count=6),
        PlanRole("tts", min_vram_gb=4, priority=200),
        PlanRole("huge", min_vram_gb=500, priority=300),
    )
)
WITHOUT_KEYS = {"Why is a machine degraded?"}


def rows() -> list[tuple[str, list[str]]]:
    """Tasks and their keys as Textual names them."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] not in ("task", "---"):
            keys = re.findall(r"`([^`]+)`", cells[1])
            found.append((cells[0], [KEYS.get(key, key) for key in keys]))
    return found


def test_the_page_has_its_tasks_and_no_other() -> None:
    assert [task for task, _ in rows()] == list(SEEN)
    assert all(len(keys) <= 3 for _, keys in rows())
    assert {task for task, keys in rows() if not keys} == WITHOUT_KEYS


@asynccontextmanager
async def dashboard(folder: Path) -> AsyncIterator[tuple[FleetApp, Pilot[None]]]:
    machines = {item.name: item for item in sample_machines()}
    ada = machines["ada"]
    assert ada.gpu is not None
    guest = GpuProcess(ada.gpu.cards[0].uuid, 5100, "/usr/bin/python3", 4096, "mia", "python train.py")
    assert ada.processes is not None
    machines["ada"] = replace(ada, processes=ProcessesReading((*ada.processes.processes, guest)))
    service = FakeService()
    service.snapshot = replace(service.snapshot, catalog=TO_PLAN)
    service.history = FleetHistory(60, 2.0)
    service.drains = FakeDrainDesk(service)  # type: ignore[assignment]
    for step in range(61):
        at = NOW - 2 * (60 - step)
        heard = tuple(
            replace(
                item, last_seen=at, seq=step + 1, sources=dict.fromkeys(item.sources, SourceStatus("ok", at))
            )
            if item.link.state == "up"
            else item
            for item in machines.values()
        )
        service.history.record(replace(service.publish_exactly(heard), taken_at=at))
    service.events = FakeEvents(
        Event(NOW - 30_000, "bora", "health_changed", "warning", "degraded since GPU 1 went", by=None)
    )
    records = {name: MachineRecord(item.machine) for name, item in machines.items()}

    def note_change(name: str) -> None:
        shown = service.snapshot.find(name)
        assert shown is not None
        service.publish(replace(shown, maintenance=records[name].maintenance, seq=shown.seq + 1))

    files = MachineFiles(machines=tuple(item.machine for item in machines.values()))
    book = FlagBook(str(folder / "state"), "machines")
    service.flags = FlagOperations(book, lambda: files, records.get, note_change, lambda: NOW)
    app = FleetApp(service, Look(), clock=Clock())
    async with app.run_test(size=(120, 26), notifications=True) as pilot:
        await settle(app, pilot)
        yield app, pilot


async def settle(app: FleetApp, pilot: Pilot[None]) -> None:
    await pilot.pause()
    app.painter.paint_now()
    await pilot.pause()


def screen_text(app: FleetApp) -> str:
    """All that is to be seen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


@pytest.mark.parametrize(("task", "keys"), rows(), ids=[task for task, _ in rows()])
async def test_the_answer_is_on_the_screen(task: str, keys: list[str], tmp_path: Path) -> None:
    async with dashboard(tmp_path) as (app, pilot):
        assert bool(re.search(SEEN[task], screen_text(app))) is (task in WITHOUT_KEYS)
        for key in keys:
            await pilot.press(key)
            await settle(app, pilot)
        if task != "What does its GPU driver say?":  # the log is followed until its tab is left
            await app.workers.wait_for_complete()
        await settle(app, pilot)
        assert re.search(SEEN[task], screen_text(app)), screen_text(app)
