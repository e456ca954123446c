"""A stored profile against what is read now; RAM against what the file declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import NOW, judged, make_card, make_fleet, make_machine, make_snapshot
from fleettui.decide.profile_drift import profile_differences
from fleettui.fleet.profile_book import ProfileBook, open_profile_book
from fleettui.fleet.profile_watch import ProfileWatch
from fleettui.fleet.record import MachineRecord
from fleettui.model.gpu import GpuCard, GpuFault, GpuProblem, GpuReading
from fleettui.model.profile import Profile, ProfileCpu, ProfileGpu
from fleettui.model.readings import MemoryReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.profiles import save_profiles
from fleettui.view.cells import text_of
from fleettui.view.layout import fleet_layout
from fleettui.view.machine_page import hardware_page

GIB = 1 << 20
"""In KiB."""
PROFILE_GPUS = (
    ProfileGpu(0, "NVIDIA GeForce RTX 4090", 24, 24564, (8, 9), "570.1"),
    ProfileGpu(1, "NVIDIA GeForce RTX 3090", 24, 24576, (8, 6), "570.1"),
)
PROFILE = Profile("ada", ProfileCpu("X", 16, 32), 126, 126 * GIB, (), PROFILE_GPUS, NOW - 86_400.0)


def card(index: int, name: str, total_mib: int, driver: str = "570.1") -> GpuCard:
    return make_card(index, total_gib=None, name=name, driver=driver, total_mib=total_mib, free_mib=total_mib)


CARDS = (card(0, "NVIDIA GeForce RTX 4090", 24564), card(1, "NVIDIA GeForce RTX 3090", 24576))


def machine(*cards: GpuCard, ram_gib: float = 126) -> MachineSnapshot:
    memory = MemoryReading(int(ram_gib * GIB), GIB, 0, 0)
    return make_snapshot("ada", gpu=GpuReading(cards), memory=memory)


@pytest.mark.parametrize(
    ("snapshot", "said"),
    [
        (machine(*CARDS), ()),
        (machine(*CARDS, ram_gib=125), ()),
        (machine(CARDS[0]), ("GPU 1 missing: RTX 3090",)),
        (machine(CARDS[0], CARDS[0]), ("GPU 1 missing: RTX 3090",)),
        (
            machine(CARDS[0], card(1, "NVIDIA GeForce RTX 5090", 32607)),
            ("GPU 1 is RTX 5090 now, was RTX 3090",),
        ),
        (machine(CARDS[0], card(1, "NVIDIA GeForce RTX 3090", 12288)), ("GPU 1 has 12 GiB now, had 24",)),
        (machine(*CARDS, card(2, "Tesla T4", 15360)), ("GPU 2 is new: T4",)),
        (
            machine(*(replace(item, driver="580.2") for item in CARDS), ram_gib=63),
            ("driver 580.2 now, was 570.1", "63 GiB of RAM now, had 126"),
        ),
    ],
)
def test_differences(snapshot: MachineSnapshot, said: tuple[str, ...]) -> None:
    assert profile_differences(snapshot, PROFILE) == said


def test_of_what_is_not_read_nothing_is_said() -> None:
    hung = GpuReading(problem=GpuProblem("hung", "hangs"))
    for snapshot in (
        make_snapshot("ada", gpu=None, memory=None),
        make_snapshot("ada", gpu=hung, memory=None),
    ):
        assert profile_differences(snapshot, PROFILE) == ()
    unread = Profile("ada", gpus=Unknown("hung"), memory_kb=Unknown("hung"))
    assert profile_differences(machine(*CARDS), unread) == ()
    nameless = (
        replace(CARDS[0], name=Unknown("N/A"), driver=Unknown("N/A"), total_mib=Unknown("N/A")),
        CARDS[1],
    )
    assert profile_differences(machine(*nameless), PROFILE) == ()


def test_the_machine_s_page_has_the_profile() -> None:
    for cards, said in (
        (CARDS, "now       no difference"),
        (CARDS[:1], "now       GPU 1 missing: RTX 3090"),
    ):
        snapshot = machine(*cards)
        layout = fleet_layout(make_fleet(snapshot), 100)
        differences = profile_differences(snapshot, PROFILE)
        sections = {
            item.title: item.lines
            for item in hardware_page(snapshot, NOW, layout, (), None, PROFILE, differences)
        }
        lines = [text_of(line) for line in sections["Profile"]]
        assert lines[0].startswith("measured  20")
        assert lines[1].startswith(
            "then      2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 3090), 126 GB RAM, "
        )
        assert said in lines
        assert "Profile" not in [item.title for item in hardware_page(snapshot, NOW, layout)]


GONE = "in the profile of 2026-11-29"
COLLECT = "if that is right: fleettui inventory collect ada"


@pytest.mark.parametrize(
    ("declared", "reading", "reason"),
    [
        (None, GpuReading(CARDS), None),
        (
            None,
            GpuReading(CARDS[:1]),
            ("degraded", f"1 GPU missing (RTX 3090): 2 {GONE}, 1 measured; {COLLECT}"),
        ),
        (  # what is left is numbered anew
            0,
            GpuReading((card(0, "NVIDIA GeForce RTX 3090", 24576),)),
            ("degraded", f"1 GPU missing (RTX 4090): 2 {GONE}, 1 measured; {COLLECT}"),
        ),
        (
            None,
            GpuReading(problem=GpuProblem("no_devices", "no devices were found")),
            ("degraded", f"2 GPUs missing (RTX 4090, RTX 3090): 2 {GONE}, 0 measured; {COLLECT}"),
        ),
        (None, GpuReading(problem=GpuProblem("asleep", "every card sleeps")), None),
        (None, GpuReading(CARDS[:1], faults=(GpuFault("00:02.0", "lost", "fell off the bus", 1),)), None),
        (2, GpuReading(CARDS[:1]), None),  # the file says so
        (
            1,
            GpuReading(CARDS[:1]),
            ("degraded", f"1 GPU missing (RTX 3090): 2 {GONE}, 1 measured; {COLLECT}"),
        ),
    ],
)
def test_a_card_that_is_gone_since_the_profile(
    declared: int | None, reading: GpuReading, reason: tuple[str, str] | None
) -> None:
    machine = make_machine("ada", gpus=declared)
    snapshot = judged(make_snapshot("ada", machine=machine, gpu=reading), profile=PROFILE)
    found = [(item.severity, item.text) for item in snapshot.reasons if item.code == "gpu_gone"]
    assert found == ([] if reason is None else [reason])
    assert reason is None or snapshot.health == "degraded"
    assert "gpu_gone" not in [item.code for item in judged(snapshot).reasons]


def test_a_card_that_the_operator_disabled_may_go() -> None:
    gpus = (PROFILE_GPUS[0], replace(PROFILE_GPUS[1], keys={"disabled": True}))
    machine = make_machine("ada", gpus=None)
    snapshot = make_snapshot("ada", machine=machine, gpu=GpuReading(CARDS[:1]))
    snapshot = judged(snapshot, profile=replace(PROFILE, gpus=gpus))
    assert snapshot.health == "healthy"
    assert [item.severity for item in snapshot.reasons if item.code == "gpu_gone"] == ["note"]


@pytest.mark.parametrize(
    ("measured_gib", "said"),
    [
        (125.7, None),
        (116, None),
        (63, "63 GiB of RAM, the file declares 128: is a module missing? else correct hardware.ram_gb"),
        (251, "251 GiB of RAM, the file declares 128: correct hardware.ram_gb"),
    ],
)
def test_ram_of_the_file_against_what_is_measured(measured_gib: float, said: str | None) -> None:
    memory = MemoryReading(int(measured_gib * GIB), 10 * GIB, 0, 0)
    snapshot = make_snapshot("ada", memory=memory, machine=make_machine("ada", ram_gb=128.0))
    reasons = [item for item in judged(snapshot).reasons if item.code == "ram_differs"]
    assert [(item.severity, item.text) for item in reasons] == ([] if said is None else [("note", said)])


async def test_the_book_follows_what_is_stored(tmp_path: Path) -> None:
    assert open_profile_book(None, "m") is None
    book = ProfileBook(str(tmp_path / "state"), "m")
    assert book.latest == {}
    assert await book.read() == {}
    with Store.open(str(tmp_path / "state")) as store:
        save_profiles(store, "m", [PROFILE])
    found = await book.read()
    assert found == {"ada": PROFILE}
    assert await book.read() is found
    assert book.latest is found
    later = replace(PROFILE, gpus=PROFILE_GPUS[:1], collected_at=NOW)
    with Store.open(str(tmp_path / "state")) as store:
        save_profiles(store, "m", [later])
    found = await book.read()
    assert found == {"ada": later}
    (tmp_path / "state" / "state.db").write_bytes(b"rubbish" * 1000)
    assert await book.read() is found
    assert book.error is not None


async def test_a_record_has_the_profile_that_was_stored_last(tmp_path: Path) -> None:
    state, changed = str(tmp_path / "state"), []
    with Store.open(state) as store:
        save_profiles(store, "m", [PROFILE])
    book = ProfileBook(state, "m")
    record, other = MachineRecord(make_machine("ada")), MachineRecord(make_machine("bora"))
    pollers: Any = {"ada": SimpleNamespace(record=record), "bora": SimpleNamespace(record=other)}
    watch = ProfileWatch(book, pollers, changed.append)
    await watch.begin()
    assert (record.profile, other.profile, changed) == (PROFILE, None, ["ada"])
    watch.follow()
    assert changed == ["ada"], "nothing is new"
    later = replace(PROFILE, gpus=PROFILE_GPUS[:1], collected_at=NOW)
    with Store.open(state) as store:
        save_profiles(store, "m", [later])
    await book.read()
    watch.follow()
    assert (record.profile, changed) == (later, ["ada", "ada"])
    again = MachineRecord(make_machine("ada"))
    watch.mark(again)
    assert again.profile == later
    await ProfileWatch(None, pollers, changed.append).begin()
