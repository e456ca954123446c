"""Real answers of nvidia-smi from the channel to the screen, to JSON, to health and to routing.

Each sample's columns are put into the order in which we ask; what it does not have is `[N/A]`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import NOW, make_fleet, make_installed, make_machine, make_snapshot
from fleettui.decide.health import judge_health
from fleettui.decide.routing import RouteQuery, decide_route
from fleettui.fleet.gpu_record import GpuRecord
from fleettui.model.machine import NOT_DECLARED, DeclaredGpu
from fleettui.model.readings import MemoryReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import free_vram, vram_sum
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops_gpu import FAST_FIELDS, QUERY_FIELDS
from fleettui.probes.memory import parse_memory
from fleettui.view.cells import text_of
from fleettui.view.document import machine_document
from fleettui.view.figures import mean_utilisation, total_power_w
from fleettui.view.layout import fleet_layout
from fleettui.view.machine_page import hardware_page, models_page

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples" / "nvidia-smi"


def sample(name: str) -> str:
    return (SAMPLES / name).read_bytes().decode()


def as_asked(text: str, fields: tuple[str, ...] = QUERY_FIELDS) -> bytes:
    """Rows of `fields` in the order of FAST_FIELDS; other lines and line ends as they are."""
    lines = []
    for line in text.split("\n"):
        values = line.rstrip("\r").split(", ")
        if len(values) == len(fields):
            known = dict(zip(fields, values, strict=True))
            end = "\r" if line.endswith("\r") else ""
            line = ", ".join(known.get(name, "[N/A]") for name in FAST_FIELDS) + end  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines).encode()


class Seen:
    """What the operator sees of a machine after these answers."""

    def __init__(
        self, *answers: bytes, code: int = 0, apps: tuple[str, int] | None = ("", 0), gpus: int | None = None,
        memory: MemoryReading | None = None, cuda: bytes = b"",
    ) -> None:  # fmt: skip
        record = GpuRecord()
        for number, answer in enumerate(answers):
            sections = {"gpu": Section(code if number == len(answers) - 1 else 0, answer)}
            if apps is not None:
                sections["apps"] = Section(apps[1], apps[0].encode())
            if cuda:
                sections["version"] = Section(0, cuda)
            assert record.take(Frame(number, sections), NOW, is_gpu_expected=gpus is None or gpus > 0)
        machine = make_machine(gpus=gpus)
        if gpus:  # whatever the sample's cards are
            machine = replace(machine, gpus=(DeclaredGpu("GPU", NOT_DECLARED),) * gpus)
        snapshot = make_snapshot(machine=machine, installed=[make_installed("m:latest", gib=1.0)])
        memory = memory or snapshot.memory
        sources = {**snapshot.sources, **{name: s.freeze() for name, s in record.sources.items()}}
        snapshot = replace(
            snapshot,
            gpu=record.with_memory(memory),
            processes=record.processes,
            memory=memory,
            sources=sources,
        )
        health, reasons = judge_health(snapshot, NOW + 1, 2.0, 0)
        self.snapshot: MachineSnapshot = replace(snapshot, health=health, reasons=reasons)
        self.health = health
        self.reasons = [f"{reason.severity}: {reason.text}" for reason in reasons]
        document = json.loads(json.dumps(machine_document(self.snapshot, NOW + 1), allow_nan=False))
        self.document: dict[str, Any] = document
        self.gpu: list[dict[str, Any]] = document["telemetry"].get("gpu", [])
        layout = fleet_layout(make_fleet(self.snapshot), 120)
        shown = (hardware_page(self.snapshot, NOW + 1, layout), models_page(self.snapshot, NOW + 1, layout))
        sections_shown = [section for page in shown for section in page]
        self.page = {section.title: [text_of(line) for line in section.lines] for section in sections_shown}

    def routes(self, **changes: Any) -> str | None:
        decision = decide_route(make_fleet(self.snapshot), RouteQuery("m:latest", **changes), NOW + 1)
        return None if decision.chosen is None else decision.chosen.machine


@pytest.mark.parametrize("name", ["01-na-vs-not-supported-new.txt", "01-na-vs-not-supported-old.txt"])
def test_no_value_is_a_dash_and_null_and_zero_is_zero(name: str) -> None:
    seen = Seen(as_asked(sample(name)))
    (card,) = seen.gpu
    assert (card["utilisation"], card["temperature_c"], card["vram_used_gb"]) == (0, 44, 0.0)
    assert (card["fan_percent"], card["power_w"], card["power_limit_w"]) == (None, None, None)
    line = seen.page["GPUs"][1]
    assert "0.0/2.0 GiB" in line
    assert " 0 %" in line
    assert "–" in line
    assert isinstance(total_power_w(seen.snapshot), Unknown)
    assert mean_utilisation(seen.snapshot) == 0


SPELLINGS = [
    "[N/A]", "[Not Supported]", "[Unknown Error]", "[Requested functionality has been deprecated]",
    "[Insufficient Permissions]", "[Not Available]", "[" + "x" * 400 + "]", "N/A", "ERR!", "", "NaN", "-",
]  # fmt: skip
NUMBER_FIELDS = [
    "memory.total", "memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw",
    "power.limit", "fan.speed",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("field", NUMBER_FIELDS)
def test_any_spelling_in_any_number(field: str, spelling: str) -> None:
    row = sample("49-eight-cards-control.txt").splitlines()[0]
    values = dict(zip(QUERY_FIELDS, row.split(", "), strict=True))
    whole = Seen(as_asked(", ".join(values.values())))
    values[field] = spelling
    seen = Seen(as_asked(", ".join(values.values())))
    keys = {
        "memory.total": "vram_total_gb", "memory.used": "vram_used_gb", "memory.free": "vram_free_gb",
        "utilization.gpu": "utilisation", "temperature.gpu": "temperature_c", "power.draw": "power_w",
        "power.limit": "power_limit_w", "fan.speed": "fan_percent",
    }  # fmt: skip
    assert whole.gpu[0][keys[field]] is not None
    assert seen.gpu == [{**whole.gpu[0], keys[field]: None}]
    assert seen.gpu[0]["unified"] is False
    assert all(len(line) <= 120 for line in seen.page["GPUs"])


def test_a_card_that_tells_little_is_healthy_and_no_idle_card() -> None:
    seen = Seen(as_asked(sample("02-old-geforce-most-fields-missing.txt")))
    assert (seen.health, seen.reasons) == ("healthy", [])
    assert (seen.gpu[0]["fan_percent"], seen.gpu[0]["pstate"], seen.gpu[0]["utilisation"]) == (52, "P0", None)
    assert "GPU 0: limited telemetry" in seen.page["GPUs"]
    assert free_vram(seen.snapshot).best_mib == 1636
    assert isinstance(mean_utilisation(seen.snapshot), Unknown)


RECOVERY = (*QUERY_FIELDS, "gpu_recovery_action")


def test_a_card_that_needs_a_reset_is_no_load_and_gets_no_model() -> None:
    seen = Seen(as_asked(sample("04-err-needs-reset.txt"), RECOVERY))
    assert seen.health == "unhealthy"
    assert "GPU 14: needs reset (recovery action: Reset); stop what runs on it" in seen.reasons[0]
    assert [card["fault"] for card in seen.gpu] == [None, "needs reset (recovery action: Reset)"]
    assert mean_utilisation(seen.snapshot) == 0
    free = free_vram(seen.snapshot)
    assert (free.best_index, free.best_mib, free.sum_mib) == (13, 20052, 20052)


@pytest.mark.parametrize("action", ["Reset", "Reboot", "Drain P2P", "Drain and Reset", "Something New"])
def test_every_recovery_action_but_none_is_a_fault(action: str) -> None:
    row = sample("04-err-needs-reset.txt").splitlines()[0].replace(", None", f", {action}")
    seen = Seen(as_asked(row, RECOVERY))
    assert action in seen.gpu[0]["fault"]
    assert ("reboot" in seen.gpu[0]["fault"].lower()) == (action == "Reboot")
    assert seen.routes(min_free_vram_mib=1) is None


@pytest.mark.parametrize("action", ["None", "N/A", "[N/A]", "[Unknown Error]"])
def test_no_recovery_action_is_no_fault(action: str) -> None:
    row = sample("04-err-needs-reset.txt").splitlines()[0].replace(", None", f", {action}")
    assert Seen(as_asked(row, RECOVERY)).gpu[0]["fault"] is None


CONTROL = as_asked(sample("49-eight-cards-control.txt"))
LOST = sample("05-gpu-is-lost-only-line.txt").encode()


def test_a_lost_card_alone_is_a_fault_of_a_machine_that_is_there() -> None:
    seen = Seen(LOST, code=15, gpus=1)
    assert (seen.health, seen.document["status"]) == ("unhealthy", "online")
    assert seen.reasons == ["unhealthy: GPU 0000:02:00.0: lost, reboot needed"]
    assert seen.document["telemetry"]["gpu_faults"] == [
        {"index": None, "bus_id": "0000:02:00.0", "fault": "GPU 0000:02:00.0: lost, reboot needed"}
    ]
    assert seen.routes(min_free_vram_mib=1) is None


@pytest.mark.parametrize("code", [0, 15, 255])
def test_last_known_cards_stay_as_stale_when_one_is_lost(code: int) -> None:
    seen = Seen(CONTROL, LOST, code=code, gpus=8)
    assert [card["index"] for card in seen.gpu] == list(range(8))
    assert all(card["stale"] for card in seen.gpu)
    assert seen.health == "unhealthy"
    assert seen.document["sources"]["gpu"]["state"] == "error"
    assert seen.routes(min_free_vram_mib=1) is None, "nothing is known of the other cards now"
    assert not Seen(CONTROL, CONTROL, gpus=8).gpu[0]["stale"]


FAULT_LINE = "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error"


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("code", [0, 15, 255])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fault_line_anywhere_among_good_rows(place: int, code: int, end: str) -> None:
    rows = [
        line
        for line in sample("06-device-handle-error-mixed-with-rows.txt").splitlines()
        if line != FAULT_LINE
    ]
    rows.insert(place, FAULT_LINE)
    seen = Seen(as_asked(end.join(rows) + end), code=code, gpus=4)
    assert [(card["index"], card["utilisation"], card["vram_free_gb"]) for card in seen.gpu] == [
        (0, 0, 39.4),
        (1, 98, 2.3),
        (3, 0, 39.4),
    ]
    assert seen.health == "degraded"
    assert [reason for reason in seen.reasons if "0000:0B:00.0: unknown error" in reason]
    assert not any("missing" in reason for reason in seen.reasons)
    assert any("unknown error" in line for line in seen.page["GPUs"])


def test_several_problems_at_once_are_all_told() -> None:
    text = sample("06-device-handle-error-mixed-with-rows.txt") + LOST.decode()
    text += "WARNING: infoROM is corrupted at gpu 0000:07:00.0\nsomething else\n"
    seen = Seen(as_asked(text), code=255, gpus=5)
    assert len(seen.gpu) == 3
    told = "\n".join(seen.reasons)
    for part in (
        "0000:0B:00.0: unknown error",
        "0000:02:00.0: lost",
        "infoROM corrupted 0000:07:00.0",
        "something else",
    ):
        assert part in told
    assert seen.reasons[0].startswith("unhealthy")
    assert "0000:02:00.0" in seen.reasons[0]


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("08-no-devices-were-found.txt", 6, "sees no GPU"),
        ("09-driver-library-mismatch.txt", 18, "mismatch: reboot or reload the driver (library 535.161)"),
        ("09-driver-library-mismatch-old.txt", 18, "mismatch: reboot or reload the driver"),
        ("10-driver-not-running.txt", 9, "NVIDIA driver not running"),
        ("10-driver-not-running-wsl.txt", 9, "NVIDIA driver not running"),
        ("12-nvml-library-missing.txt", 12, "NVML library (libnvidia-ml.so) missing"),
        ("14-nvml-insufficient-permissions.txt", 4, "no permission for the GPU devices"),
        ("53-single-dash-long-option.txt", 2, "does not understand our query"),
    ],
)
@pytest.mark.parametrize("other_code", [None, 0, 255])
def test_error_sentences_whatever_the_code(name: str, code: int, words: str, other_code: int | None) -> None:
    seen = Seen(sample(name).encode(), code=code if other_code is None else other_code, gpus=1)
    assert (seen.health, seen.document["status"], seen.gpu) == ("unhealthy", "online", [])
    assert words in seen.reasons[0]
    assert seen.document["telemetry"]["cpu_percent"] == 12.4
    again = Seen(CONTROL, sample(name).replace("\n", "\r\n").encode(), CONTROL, code=0, gpus=8)
    assert (again.health, len(again.gpu)) == ("healthy", 8), "the next good answer clears it"


def test_no_devices_is_neutral_where_none_is_declared() -> None:
    seen = Seen(sample("08-no-devices-were-found.txt").encode(), code=6, gpus=0)
    assert (seen.health, seen.reasons) == ("healthy", [])
    assert "gpu" not in seen.document["telemetry"]


def test_rows_with_a_warning_behind_them_are_live() -> None:
    seen = Seen(as_asked(sample("17-inforom-corrupted-trailer.txt")), code=14, gpus=2)
    assert (seen.health, len(seen.gpu), seen.gpu[1]["utilisation"]) == ("healthy", 2, 12)
    assert seen.reasons[0] == "note: nvidia-smi: infoROM corrupted 0000:B3:00.0"


APPS = sample("18-gb10-unified-memory-apps.txt")


def spark(row: str = sample("18-gb10-unified-memory-gpu.txt"), **changes: Any) -> Seen:
    memory = parse_memory((SAMPLES / "18-gb10-unified-memory-meminfo.txt").read_bytes())
    return Seen(as_asked(row), apps=(APPS, 0), gpus=1, memory=memory, **changes)


def test_unified_memory_is_the_machines_and_counts_once() -> None:
    seen = spark()
    (card,) = seen.gpu
    assert (card["vram_total_gb"], card["vram_free_gb"], card["vram_used_gb"]) == (121.7, 113.1, 18.7)
    assert (card["unified"], card["utilisation"], card["temperature_c"], card["power_w"]) == (
        True,
        0,
        35,
        11.2,
    )
    assert (card["power_limit_w"], card["pcie"], seen.health) == (None, None, "healthy")
    assert free_vram(seen.snapshot).best_mib == free_vram(seen.snapshot).sum_mib == 118566368 // 1024
    assert not any("limited telemetry" in line for line in seen.page["GPUs"])
    row = sample("18-gb10-unified-memory-gpu.txt")
    second = row.replace("0, GPU-000000a0", "1, GPU-000000a1", 1)
    both = spark(row + second)
    assert vram_sum(both.snapshot).total_mib == 127600748 // 1024
    assert vram_sum(both.snapshot).card_count == 2


def test_a_unified_part_with_a_total_of_its_own_keeps_it() -> None:
    row = sample("18-gb10-unified-memory-gpu.txt").replace("[N/A], [N/A], [N/A]", "122502, 20000, 120000", 1)
    (card,) = spark(row).gpu
    assert card["unified"] is True
    assert (card["vram_total_gb"], card["vram_used_gb"]) == (119.6, 19.5)
    assert card["vram_free_gb"] == 113.1, "MemAvailable limits it"


def test_a_grace_hopper_is_not_unified() -> None:
    row = sample("18-gb10-unified-memory-gpu.txt").replace("NVIDIA GB10", "NVIDIA GH200 480GB")
    (card,) = spark(row.replace("[N/A], [N/A], [N/A]", "97871, 2, 97284", 1)).gpu
    assert (card["unified"], card["vram_total_gb"], card["vram_free_gb"]) == (False, 95.6, 95.0)


def test_rubbish_in_the_memory_columns_is_no_unified_memory() -> None:
    row = sample("18-gb10-unified-memory-gpu.txt").replace("NVIDIA GB10", "NVIDIA X")
    for rubbish in ("[Unknown Error], [N/A], [N/A]", "abc, [N/A], [N/A]", "[N/A], [N/A], 5"):
        (card,) = spark(row.replace("[N/A], [N/A], [N/A]", rubbish, 1)).gpu
        assert card["unified"] is False
        assert card["vram_total_gb"] is None


def test_a_jetson_is_one_gpu_with_limited_telemetry() -> None:
    seen = Seen(as_asked(sample("19-jetson-orin-all-na.txt")), gpus=1, apps=("", 0))
    (card,) = seen.gpu
    assert (card["name"], card["uuid"], card["unified"]) == ("Orin (nvgpu)", None, True)
    assert (card["vram_total_gb"], card["vram_free_gb"], card["utilisation"]) == (128.0, 90.0, None)
    assert "GPU 0: integrated GPU: limited telemetry" in seen.page["GPUs"]
    assert seen.health == "healthy"


def test_a_vgpu_slice_is_what_it_says() -> None:
    (card,) = Seen(as_asked(sample("26-vgpu-guest.txt")), gpus=1).gpu
    assert (card["name"], card["vram_total_gb"], card["vram_free_gb"]) == ("NVIDIA H100L-2-24C", 24.0, 22.0)
    assert (card["temperature_c"], card["power_w"], card["fan_percent"]) == (None, None, None)


def test_wsl_says_that_it_has_no_process_list() -> None:
    seen = Seen(as_asked(sample("27-wsl-path-and-err-row.txt")), apps=("", 77), gpus=1)
    assert (seen.gpu[0]["utilisation"], seen.gpu[0]["processes"], seen.health) == (None, None, "healthy")
    assert seen.page["GPU processes"] == ["process list not available here (WSL)"]


def test_a_tool_that_cannot_run_is_there() -> None:
    text = "timeout: failed to run command '/usr/lib/wsl/lib/nvidia-smi': No such file or directory"
    seen = Seen(text.encode(), code=127, gpus=1)
    assert "nvidia-smi is there and cannot run" in seen.reasons[0]
    assert text in seen.page["GPUs"][-1]
    assert "no nvidia-smi found" in Seen(b"", code=127, gpus=1).reasons[0]


def test_desktop_programs_are_no_model_and_their_memory_is_unknown() -> None:
    apps = sample("29-windows-wddm-processes-apps.txt")
    seen = Seen(as_asked(sample("29-windows-wddm-processes-gpu.txt")), apps=(apps, 0), gpus=1)
    (card,) = seen.gpu
    assert [process["name"] for process in card["processes"]] == [
        "TextInputHost.exe", "dwm.exe", "NZXT CAM.exe", "NVIDIA Share.exe",
    ]  # fmt: skip
    assert all(process["vram_gb"] is None for process in card["processes"])
    assert (card["vram_used_gb"], card["vram_free_gb"], seen.reasons) == (0.7, 7.1, [])


def test_implausible_power_is_marked_and_in_no_sum() -> None:
    control = sample("49-eight-cards-control.txt").splitlines()[0]
    laptop = sample("37-implausible-power.txt").replace("0, GPU-000000a0", "8, GPU-000000a8", 1)
    seen = Seen(as_asked(control + "\n" + laptop), gpus=2)
    assert (seen.gpu[1]["power_w"], seen.gpu[1]["implausible"]) == (588.4, ["power_w"])
    assert total_power_w(seen.snapshot) == seen.snapshot.gpu.cards[0].power_w  # type: ignore[union-attr]
    assert any("588!/35 W" in line for line in seen.page["GPUs"])


def test_memory_in_use_decides_not_the_process_list() -> None:
    seen = Seen(as_asked(sample("42-empty-process-list-is-not-idle-gpu.txt")), apps=("", 0), gpus=2)
    assert any("in use by processes not visible here" in reason for reason in seen.reasons)
    free = free_vram(seen.snapshot)
    assert (free.best_index, free.best_mib) == (1, 7571)


def test_rows_with_exit_255_are_used() -> None:
    seen = Seen(as_asked(sample("45-nonzero-exit-with-good-rows.txt")), code=255, gpus=1)
    assert (seen.health, seen.gpu[0]["vram_free_gb"], seen.gpu[0]["stale"]) == ("healthy", 1.8, False)


def test_sleeping_cards_are_free_and_not_woken() -> None:
    payload = sample("46-polling-keeps-laptop-gpu-awake.txt").encode()
    row = as_asked(sample("45-nonzero-exit-with-good-rows.txt"))
    seen = Seen(row, payload, code=76, gpus=1)
    assert seen.health == "healthy"
    assert "sleep" in seen.reasons[0]
    assert free_vram(seen.snapshot).best_mib == 1793
    assert seen.routes(min_free_vram_mib=1) == "ada"


def test_cuda_comes_from_the_version_and_the_driver_from_the_query() -> None:
    version = sample("35-version-output-deprecated-610.txt").encode()
    seen = Seen(CONTROL, gpus=8, cuda=version)
    assert seen.document["system"]["cuda"] == "13.3"
    assert seen.document["system"]["driver"] == sample("49-eight-cards-control.txt").split(", ")[3]


def test_truncated_last_row_is_no_card_and_no_fault() -> None:
    """A tool that was killed while it printed: what is whole counts, what is cut off is not believed."""
    row = CONTROL.splitlines()[0]
    whole = CONTROL.splitlines()[1]
    for end in range(len(whole)):
        seen = GpuRecord()
        frame = Frame(0, {"gpu": Section(137, row + b"\n" + whole[:end])})
        seen.take(frame, NOW, is_gpu_expected=True)
        assert seen.reading is not None
        assert seen.reading.cards[0].index == 0
        for card in seen.reading.cards[1:]:
            assert isinstance(card.bus_id, Unknown)
            assert card.fault is None
