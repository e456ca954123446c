"""AMD cards in the record of a machine: alone, beside NVIDIA's, asleep, too busy, without driver or tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import NOW, make_machine
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import Machine
from fleettui.model.record import replace
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import free_vram
from fleettui.probes.frames import Frame, Section

SAMPLES = Path(__file__).parents[1] / "fixtures" / "amd"
NO_NVIDIA = Section(127, b"")
NVIDIA_ROW = (
    b"512, 23500, 3, 40, 30.00, 30, 0, GPU-a0, NVIDIA X, 550.1, 24576, 350.00, P8, None, [N/A], "
    b"00000000:01:00.0\n"
)
KINDS = Section(0, b"0000:03:00.0 120 0 1 3\n0000:83:00.0 120 0 1 3\n")


def sample(name: str, tool: str = "amd-smi") -> Section:
    return Section(0, tool.encode() + b"\n" + (SAMPLES / name).read_bytes())


TOOL = {
    "amd-kind": KINDS,
    "amd-static": Section(0, b"amd-smi\n[]"),
    "amd-list": sample("smi-list-rocm7.json"),
    "amd-process": sample("smi-process-rocm7.json"),
}
SYSFS = Section(0, (SAMPLES / "sysfs-two-cards.txt").read_bytes())


class Driven:
    """A machine whose GPU loop answers what the test says; it is asked as the poller asks."""

    def __init__(self, machine: Machine | None = None, **answers: Section) -> None:
        self.record = MachineRecord(machine or make_machine("ada", gpus=None))
        self.answers = {name.replace("_", "-"): section for name, section in answers.items()}
        self.now = NOW
        self.asked: list[tuple[str, ...]] = []
        self.record.link_up("192.0.2.1:22", NOW)
        self.record.last_seen = NOW

    def poll(self, seconds: float = 2.0) -> MachineSnapshot:
        """One tick: ask what is due, answer it, ask what that made due."""
        self.now += seconds
        self.record.last_seen = self.now
        sections = self.record.amd.due(self.now, True)
        if not self.record.gpu.has_no_tool:
            sections += ("gpu",)
        while sections:
            self.asked.append(sections)
            self.record.gpu.ask(sections, self.now)
            self.record.amd.ask(sections, self.now)
            frame = {name: self.answers.get(name, NO_NVIDIA) for name in sections}
            self.record.take_gpu(Frame(1, frame), self.now)
            sections = self.record.amd.tool_due(self.now, True) if self.record.amd.awaits_more else ()
        return self.record.freeze(self.now, 2.0)


def reasons(snapshot: MachineSnapshot) -> list[tuple[str, str]]:
    return [(reason.severity, reason.code) for reason in snapshot.reasons]


def test_an_amd_host_is_healthy_and_says_nothing_of_nvidia() -> None:
    driven = Driven(make_machine("ada", gpus=2), gpu=NO_NVIDIA, amd=SYSFS, **TOOL)
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [(c.index, c.vendor, c.used_mib, c.bus_id) for c in snapshot.gpu.cards] == [
        (0, "amd", 20450, "0000:03:00.0"),
        (1, "amd", 60, "0000:83:00.0"),
    ]
    assert (snapshot.gpu.problem, snapshot.sources["gpu"].state) == (None, "ok")
    assert "amd" not in snapshot.sources
    assert snapshot.health == "healthy", snapshot.reasons
    assert not [reason for reason in snapshot.reasons if "vidia" in reason.text]
    assert snapshot.processes is not None
    on_cards = [(process.pid, process.gpu_uuid) for process in snapshot.processes.processes]
    assert on_cards == [(2266127, snapshot.gpu.cards[0].uuid), (2168275, snapshot.gpu.cards[1].uuid)]
    assert (snapshot.sources["processes"].state, free_vram(snapshot).best_mib) == ("ok", 30516)


def test_the_tool_is_asked_once_and_processes_each_ten_seconds() -> None:
    driven = Driven(gpu=NO_NVIDIA, amd=SYSFS, **TOOL)
    for _ in range(11):
        driven.poll()
    asked = [name for sections in driven.asked for name in sections]
    assert asked.count("gpu") == 1, "no nvidia-smi: not looked for again on this connection"
    assert asked.count("amd") == 11
    assert [asked.count(name) for name in ("amd-kind", "amd-static", "amd-list")] == [1, 1, 1]
    assert asked.count("amd-process") == 3
    assert "amd-metric" not in asked, "sysfs has every figure"


def test_figures_that_sysfs_does_not_have_come_from_the_tool() -> None:
    bare = Section(0, b"card 0000:03:00.0 1\ncard 0000:83:00.0 2\n")
    driven = Driven(gpu=NO_NVIDIA, amd=bare, **{**TOOL, "amd-metric": sample("smi-metric-rocm7.json")})
    driven.poll()
    snapshot = driven.poll(10.0)
    assert snapshot.gpu is not None
    assert [(c.total_mib, c.used_mib, c.power_w) for c in snapshot.gpu.cards] == [
        (30576, 20450, 246.0),
        (30576, 59, 13.0),
    ]


def test_a_machine_without_amd_is_asked_once() -> None:
    driven = Driven(gpu=Section(0, NVIDIA_ROW))
    for _ in range(5):
        snapshot = driven.poll()
    assert [sections for sections in driven.asked if "amd" in sections] == [("amd", "gpu")]
    assert "amd" not in snapshot.sources
    assert snapshot.gpu is driven.record.gpu.reading
    driven.record.amd.begin_connection()
    driven.poll()
    assert driven.asked[-1] == ("amd", "gpu"), "a new connection looks again"


def test_cards_of_two_vendors_with_numbers_that_never_move() -> None:
    driven = Driven(make_machine("ada", gpus=3), gpu=Section(0, NVIDIA_ROW), amd=SYSFS, **TOOL)
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [(c.index, c.vendor) for c in snapshot.gpu.cards] == [(0, "nvidia"), (1, "amd"), (2, "amd")]
    assert [snapshot.sources[name].state for name in ("gpu", "amd")] == ["ok", "ok"]
    driven.answers["gpu"] = Section(
        15, b"Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system\n"
    )
    lost = driven.poll()
    assert lost.gpu is not None
    assert [c.index for c in lost.gpu.cards if c.vendor == "amd"] == [1, 2]
    assert ("unhealthy", "gpu_lost") in reasons(lost)


def test_a_failing_amd_part_hides_no_nvidia_card() -> None:
    driven = Driven(
        make_machine("ada", gpus=2), gpu=Section(0, NVIDIA_ROW), amd=Section(6, b"unbound 0000:05:00.0\n")
    )
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [card.vendor for card in snapshot.gpu.cards] == ["nvidia"]
    assert (snapshot.sources["gpu"].state, snapshot.sources["amd"].state) == ("ok", "error")
    assert reasons(snapshot) == [("degraded", "gpu_missing"), ("degraded", "amd_driver_not_running")]
    assert "modprobe amdgpu" in snapshot.reasons[1].text


def test_a_failing_nvidia_driver_hides_no_amd_card() -> None:
    mismatch = Section(18, b"Failed to initialize NVML: Driver/library version mismatch\n")
    driven = Driven(gpu=mismatch, amd=SYSFS, **TOOL)
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [card.vendor for card in snapshot.gpu.cards] == ["amd", "amd"]
    assert ("degraded", "gpu_version_mismatch") in reasons(snapshot)


def test_a_card_without_a_driver_on_a_machine_that_declares_it() -> None:
    driven = Driven(make_machine("ada", gpus=1), gpu=NO_NVIDIA, amd=Section(6, b"unbound 0000:05:00.0\n"))
    snapshot = driven.poll()
    assert reasons(snapshot) == [("unhealthy", "gpu_driver_not_running")]
    assert "nvidia" not in snapshot.reasons[0].text.lower()
    assert "modprobe amdgpu" in snapshot.reasons[0].text


def test_only_sysfs() -> None:
    driven = Driven(gpu=NO_NVIDIA, amd=SYSFS, amd_kind=KINDS)
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [card.name for card in snapshot.gpu.cards] == ["AMD GPU (memory only)"] * 2
    assert snapshot.health == "healthy"
    assert [code for _, code in reasons(snapshot)] == ["gpu_note"]
    assert snapshot.sources["processes"].state in ("never", "unsupported")


def test_a_tool_without_permission_is_a_note_where_sysfs_has_the_cards() -> None:
    denied = sample("smi-no-permission.txt")
    driven = Driven(
        gpu=NO_NVIDIA, amd=SYSFS, amd_kind=KINDS, amd_static=denied, amd_list=denied, amd_process=denied
    )
    snapshot = driven.poll()
    assert snapshot.health == "healthy"
    assert any("render and video" in reason.text for reason in snapshot.reasons)
    assert "render and video" in (snapshot.sources["processes"].error or "")


@pytest.mark.parametrize(
    ("power", "limit", "is_trusted"),
    [(30, 300, False), (280, 300, True), (None, 300, False), (280, None, False)],
)
def test_a_constant_100_percent_is_believed_only_with_the_power_it_takes(
    power: int | None, limit: int | None, is_trusted: bool
) -> None:
    text = (
        "card 0000:03:00.0 1\nmem_info_vram_total 17163091968\nmem_info_vram_used 0\ngpu_busy_percent 100\n"
    )
    text += "" if power is None else f"power1_average {power}000000\n"
    text += "" if limit is None else f"power1_cap {limit}000000\n"
    driven = Driven(gpu=NO_NVIDIA, amd=Section(0, text.encode()), **TOOL)
    first = driven.poll()
    assert first.gpu is not None
    assert first.gpu.cards[0].utilisation_percent == 100
    for _ in range(35):
        later = driven.poll()
    assert later.gpu is not None
    busy = later.gpu.cards[0].utilisation_percent
    assert busy == 100 if is_trusted else isinstance(busy, Unknown)
    assert later.health == "healthy"
    assert any("not trusted" in reason.text for reason in later.reasons) != is_trusted
    driven.answers["amd"] = Section(0, text.replace("percent 100", "percent 7").encode())
    pause = driven.poll()
    assert pause.gpu is not None
    assert pause.gpu.cards[0].utilisation_percent == 7


def test_an_integrated_part_beside_a_card_is_left_out_and_asked_no_more() -> None:
    integrated = Section(0, (SAMPLES / "sysfs-strix-halo.txt").read_bytes())
    kinds = Section(0, (SAMPLES / "kinds-strix-halo.txt").read_bytes())
    driven = Driven(
        make_machine("ada", gpus=1), gpu=Section(0, NVIDIA_ROW), amd=integrated, **{**TOOL, "amd-kind": kinds}
    )
    for _ in range(3):
        snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [card.vendor for card in snapshot.gpu.cards] == ["nvidia"]
    assert free_vram(snapshot).best_mib == 23500
    assert snapshot.health == "healthy"
    assert sum("amd" in sections for sections in driven.asked) == 1


@pytest.mark.parametrize(("changes", "has_card"), [({}, True), ({"gpus": ()}, False)])
def test_an_integrated_part_alone_counts_where_its_tool_is(changes: dict[str, Any], has_card: bool) -> None:
    driven = Driven(
        replace(make_machine("halo", gpus=None), **changes),
        gpu=NO_NVIDIA,
        amd=Section(0, (SAMPLES / "sysfs-strix-halo.txt").read_bytes()),
        amd_kind=Section(0, (SAMPLES / "kinds-strix-halo.txt").read_bytes()),
        amd_static=sample("smi-static-strix-halo.json"),
        amd_list=sample("smi-list-strix-halo.json"),
        amd_process=sample("smi-process-none.json"),
    )
    snapshot = driven.poll()
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    assert [card.is_unified for card in cards] == [True] * has_card
    if cards:
        assert cards[0].total_mib == 512 + 98304


def test_a_sleeping_card_keeps_its_figures() -> None:
    driven = Driven(gpu=NO_NVIDIA, amd=SYSFS, **TOOL)
    driven.poll()
    driven.answers["amd"] = Section(0, b"card 0000:83:00.0 1\nasleep\ncard 0000:03:00.0 2\nasleep\n")
    snapshot = driven.poll()
    assert snapshot.gpu is not None
    assert [card.total_mib for card in snapshot.gpu.cards] == [30576, 30576]
    assert snapshot.health == "healthy"
    assert any("asleep" in reason.text for reason in snapshot.reasons)


@pytest.mark.parametrize("gpus", [1, None])
def test_graphics_of_a_processor_without_a_driver_are_nobodys_trouble(gpus: int | None) -> None:
    driven = Driven(
        make_machine("ada", gpus=gpus), gpu=Section(0, NVIDIA_ROW), amd=Section(6, b"unbound 0000:05:00.0\n")
    )
    snapshot = driven.poll()
    assert (snapshot.health, snapshot.reasons) == ("healthy", ())
    assert "amd" not in snapshot.sources


def test_a_tool_without_a_card() -> None:
    nothing = Section(127, b"tool rocm-smi\n")
    declared = Driven(make_machine("ada", gpus=1), gpu=NO_NVIDIA, amd=nothing).poll()
    assert [(reason.severity, reason.text) for reason in declared.reasons] == [
        ("unhealthy", "rocm-smi is there, and the kernel shows no AMD card")
    ]
    undeclared = Driven(gpu=NO_NVIDIA, amd=nothing).poll()
    assert (undeclared.health, undeclared.reasons) == ("healthy", ())


def test_a_lost_answer_of_the_tool_holds_nothing_up() -> None:
    driven = Driven(gpu=NO_NVIDIA, amd=SYSFS)
    driven.answers["amd-static"] = Section(0, b"")
    driven.poll()
    assert driven.record.amd.tool_due(driven.now, True) == ()
