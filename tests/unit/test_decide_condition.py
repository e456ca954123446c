"""Reasons that the condition of cards gives, and drivers that differ across the fleet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, make_card, make_fleet, make_installed, make_machine, make_process, make_snapshot
from fleettui.decide.condition_reasons import DAY_S
from fleettui.decide.health import judge_health
from fleettui.decide.routing import RouteQuery, decide_route
from fleettui.decide.skew import DriverVersions, find_skew, versions_of
from fleettui.model.gpu import CardCondition, GpuCondition, GpuReading, MigInstance, XidEvent
from fleettui.model.residency import shares_of
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import free_vram, vram_sum
from fleettui.view.cells import text_of
from fleettui.view.document import machine_document
from fleettui.view.layout import fleet_layout
from fleettui.view.machine_page import hardware_page
from fleettui.view.summary import summarize

FINE = CardCondition(
    0, make_card(0).uuid, make_card(0).bus_id, True, 16, 16, 4, 4, True, (), 0, 0, False, "None", "8.9"
)


def snapshot_with(
    condition: CardCondition = FINE, *, disabled: tuple[int, ...] = (), **more: Any
) -> MachineSnapshot:
    cards = (make_card(0), make_card(1))
    second = replace(FINE, index=1, uuid=cards[1].uuid, bus_id=cards[1].bus_id)
    reading = GpuReading(cards, condition=GpuCondition((condition, second), **more))
    return replace(make_snapshot(machine=make_machine(gpus=2, disabled_gpus=disabled)), gpu=reading)


def reasons_of(snapshot: MachineSnapshot, now: float = NOW) -> list[tuple[str, str, str]]:
    return [(reason.severity, reason.code, reason.text) for reason in judge_health(snapshot, now, 1e9, 0)[1]]


def page(snapshot: MachineSnapshot) -> list[str]:
    layout = fleet_layout(make_fleet(snapshot), 120)
    sections = {section.title: section.lines for section in hardware_page(snapshot, NOW, layout)}
    return [text_of(line) for line in sections["GPUs"]]


def test_a_card_in_order_has_nothing_to_tell() -> None:
    snapshot = snapshot_with(xids=(), call_s=0.05, cuda="13.0")
    assert reasons_of(snapshot) == []
    assert len(page(snapshot)) == 3
    (card, _) = machine_document(snapshot, NOW)["telemetry"]["gpu"]
    assert card["pcie"] == {"width": 16, "width_max": 16, "generation": 4, "generation_max": 4}
    assert (card["persistence"], card["throttle"], card["xid"], card["compute_cap"]) == (True, [], [], "8.9")
    assert card["ecc"] == {"uncorrected": 0, "corrected": 0}


def test_unknown_is_no_reason() -> None:
    assert reasons_of(snapshot_with(CardCondition(0))) == []


AILMENTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"throttle": ("thermal",)}, "degraded", "gpu_throttle_thermal", "GPU 0 slowed down by heat: check fans"),
    ({"throttle": ("power brake",)}, "degraded", "gpu_throttle_power_brake", "power supply and cables"),
    ({"throttle": ("power cap",)}, "note", "gpu_throttle_power_cap", "GPU 0 at the power limit"),
    ({"throttle": ("hardware slowdown",)}, "note", "gpu_throttle_hardware_slowdown", "GPU 0"),
    ({"ecc_uncorrected": 1}, "degraded", "gpu_ecc", "GPU 0: 1 uncorrected ECC error since"),
    ({"ecc_uncorrected": 3}, "degraded", "gpu_ecc", "GPU 0: 3 uncorrected ECC errors since"),
    ({"is_retirement_pending": True}, "note", "gpu_retirement", "reset or reboot"),
    ({"pcie_width": 8}, "note", "gpu_pcie", "GPU 0: PCIe x8 of x16"),
    ({"pcie_width": 4}, "degraded", "gpu_pcie", "GPU 0: PCIe x4 of x16"),
    ({"has_persistence": False}, "note", "gpu_persistence", "persistence mode is off (GPU 0)"),
]


@pytest.mark.parametrize(("change", "severity", "code", "text"), AILMENTS)
def test_ailments(change: dict[str, Any], severity: str, code: str, text: str) -> None:
    sick = snapshot_with(replace(FINE, **change))
    ((found, found_code, found_text),) = reasons_of(sick)
    assert (found, found_code) == (severity, code)
    assert text in found_text
    assert judge_health(sick, NOW, 1e9)[0] == ("healthy" if severity == "note" else severity)
    assert reasons_of(snapshot_with(replace(FINE, **change), disabled=(0,))) == []


def test_a_link_at_rest_may_be_narrow() -> None:
    snapshot = snapshot_with(replace(FINE, pcie_width=4, is_at_work=False))
    assert reasons_of(snapshot) == []
    assert "GPU 0: PCIe x4 of x16 at rest" in page(snapshot)


def test_persistence_off_and_a_slow_tool_belong_together() -> None:
    (reason,) = reasons_of(snapshot_with(replace(FINE, has_persistence=False), call_s=3.46))
    assert "nvidia-smi takes 3 s a call: `nvidia-smi -pm 1`" in reason[2]
    slow = snapshot_with(call_s=6.0)
    assert reasons_of(slow) == [
        ("note", "gpu_slow_tool", "nvidia-smi takes 6 s a call: a busy or ailing driver")
    ]
    assert "nvidia-smi took 6.0 s" in page(slow)


def xid(code: int, *, ago_s: float = 60.0, bus_id: str = "0000:01:00", text: str = "x") -> XidEvent:
    return XidEvent(code, bus_id, 10.0, text, NOW - ago_s)


def test_xids_of_the_card_degrade_for_a_day_and_those_of_programs_are_notes() -> None:
    both = snapshot_with(xids=(xid(31), xid(79, ago_s=90)))
    assert reasons_of(both) == [
        (
            "degraded",
            "gpu_xid",
            "GPU 0: Xid 79 at 14:01, GPU has fallen off the bus: reboot; check power and seat of the card",
        ),
        (
            "note",
            "gpu_xid",
            "GPU 0: Xid 31 at 14:02, GPU memory page fault: look at the program that ran on it",
        ),
    ]
    later = reasons_of(both, NOW + DAY_S)
    assert [(severity, "more than a day ago" in text) for severity, _, text in later] == [("note", True)]
    (card, other) = machine_document(both, NOW)["telemetry"]["gpu"]
    assert [event["code"] for event in card["xid"]] == [31, 79]
    assert card["xid"][1]["at"] == "2026-11-30T14:01:42Z"
    assert other["xid"] == []
    assert any("GPU 0: Xid 79 at 14:01 UTC" in line for line in page(both))
    old = snapshot_with(xids=(xid(79, ago_s=2 * DAY_S),))
    assert any("GPU 0: Xid 79 at 2026-11-28 14:03 UTC" in line for line in page(old))


def test_the_same_xid_again_is_said_once_with_its_last_time() -> None:
    (reason,) = reasons_of(snapshot_with(xids=(xid(95, ago_s=600), xid(95, ago_s=60))))
    assert "Xid 95 at 14:02" in reason[2]


def test_an_xid_of_an_unknown_card_names_the_bus() -> None:
    (reason,) = reasons_of(snapshot_with(xids=(xid(79, bus_id="0000:AA:00"),)))
    assert reason[2].startswith("GPU at 0000:AA:00: Xid 79")
    assert reasons_of(snapshot_with(xids=Unknown("may not be read"))) == []


def test_the_most_severe_comes_first() -> None:
    sick = replace(
        FINE, ecc_uncorrected=2, throttle=("thermal", "power cap"), has_persistence=False, pcie_width=1
    )
    codes = [code for _, code, _ in reasons_of(snapshot_with(sick, xids=(xid(79), xid(13))))]
    assert codes == [
        "gpu_xid", "gpu_ecc", "gpu_throttle_thermal", "gpu_pcie", "gpu_xid", "gpu_throttle_power_cap",
        "gpu_persistence",
    ]  # fmt: skip


INSTANCES = (
    MigInstance("3g.40gb", "MIG-0", 40448, 11091, 29356),
    MigInstance("2g.20gb", "MIG-1", 20096, 17, 20079),
    MigInstance("1g.10gb", "MIG-2", 9984, 9, 9975),
)


def mig_snapshot(**changes: Any) -> MachineSnapshot:
    card = make_card(
        0, name="NVIDIA H100 80GB HBM3", mig=INSTANCES, is_mig=True, total_mib=81559, used_mib=11125,
        free_mib=69956, utilisation_percent=Unknown("N/A"),
    )  # fmt: skip
    return make_snapshot(cards=[replace(card, **changes)], gpus=1, installed=[make_installed("m:1", gib=35)])


def test_a_model_is_compared_with_the_largest_instance() -> None:
    snapshot = mig_snapshot()
    free = free_vram(snapshot)
    assert (free.best_mib, free.best_index, free.sum_mib) == (29356, 0, 29356)
    decision = decide_route(make_fleet(snapshot), RouteQuery("m:1", min_free_vram_mib=1), NOW)
    assert decision.chosen is None  # 42 GiB: the card has them, no instance does
    assert decision.rejected[0].rejections[0].code == "free_vram"
    host = RouteQuery("m:1", min_free_vram_mib=1, free_scope="host")
    assert decide_route(make_fleet(snapshot), host, NOW).chosen is None
    beside = replace(snapshot, gpu=GpuReading((*snapshot.gpu.cards, make_card(1))))  # type: ignore[union-attr]
    assert free_vram(beside).sum_mib == 29356
    assert free_vram(beside).best_index == 0


def test_unknown_instances_have_no_room() -> None:
    for changes in ({"mig": ()}, {"mig": (replace(INSTANCES[0], free_mib=Unknown()),)}):
        free = free_vram(mig_snapshot(**changes))
        assert free.best_mib == Unknown("MIG is on, its instances are not known")


def test_the_card_counts_once() -> None:
    snapshot = mig_snapshot()
    sums = vram_sum(snapshot)
    assert (sums.total_mib, sums.used_mib, sums.card_count) == (81559, 11125, 1)
    figures = summarize(make_fleet(snapshot), NOW)
    assert (figures.gpus, figures.total_mib) == (1, 81559)


def test_instances_stand_below_their_card() -> None:
    lines = page(mig_snapshot())
    assert "H100 · MIG" in lines[1]
    assert "10.9/79.6 GiB" in lines[1]
    assert [line.split("MIG ")[1].split()[0] for line in lines[2:5]] == ["3g.40gb", "2g.20gb", "1g.10gb"]
    assert "10.8/39.5 GiB" in lines[2]
    (card,) = machine_document(mig_snapshot(), NOW)["telemetry"]["gpu"]
    assert card["utilisation"] is None
    assert card["mig"][0] == {
        "profile": "3g.40gb",
        "uuid": "MIG-0",
        "vram_total_gb": 39.5,
        "vram_used_gb": 10.8,
        "vram_free_gb": 28.7,
    }


@pytest.mark.parametrize("uuid", ["MIG-0", "MIG-2", make_card(0).uuid, f"MIG-{make_card(0).uuid}/3/0"])
def test_processes_join_their_card_by_either_uuid(uuid: str) -> None:
    snapshot = mig_snapshot()
    process = make_process(gpu_uuid=uuid)
    snapshot = replace(snapshot, processes=replace(snapshot.processes, processes=(process,)))  # type: ignore[type-var]
    (card,) = machine_document(snapshot, NOW)["telemetry"]["gpu"]
    assert [item["pid"] for item in card["processes"]] == [process.pid]
    assert shares_of(snapshot) == ()


def test_cards_without_a_uuid_share_no_process() -> None:
    cards = [make_card(index, uuid=Unknown("N/A")) for index in range(2)]
    snapshot = make_snapshot(cards=cards, processes=[make_process(gpu_uuid=Unknown("N/A"))])
    assert [card["processes"] for card in machine_document(snapshot, NOW)["telemetry"]["gpu"]] == [[], []]


def versions(*drivers: str, cuda: str | None = None) -> dict[str, DriverVersions]:
    return {f"m{n}": DriverVersions("nvidia", driver, cuda) for n, driver in enumerate(drivers)}


def test_a_driver_that_most_do_not_have_is_noted() -> None:
    notes = find_skew(versions("580.95.05", "580.95.05", "535.161.08", "580.95.05"))
    assert list(notes) == ["m2"]
    assert notes["m2"].text == "driver 535.161.08 here, 580.95.05 on 3 of 4 machines"
    assert (notes["m2"].severity, notes["m2"].code) == ("note", "driver_skew")


@pytest.mark.parametrize(
    "drivers", [(), ("1",), ("1", "2"), ("1", "1", "2", "2"), ("1", "2", "3"), ("1", "1", "1")]
)
def test_without_a_majority_nobody_is_odd(drivers: tuple[str, ...]) -> None:
    assert find_skew(versions(*drivers)) == {}


def test_vendors_are_compared_among_themselves() -> None:
    mixed = versions("1", "1", "1")
    mixed |= {f"a{n}": DriverVersions("amd", "6.12") for n in range(2)}
    assert find_skew(mixed) == {}


def test_cuda_alone_may_differ_too() -> None:
    mixed = versions("1", "1", "1", "1", cuda="13.0")
    mixed["m3"] = DriverVersions("nvidia", "1", "12.8")
    assert find_skew(mixed)["m3"].text == "CUDA 12.8 here, 13.0 on 3 of 4 machines"


def test_versions_of_a_reading() -> None:
    reading = GpuReading((make_card(),), condition=GpuCondition(cuda="13.0"))
    assert versions_of(reading) == DriverVersions("nvidia", "580.126.09", "13.0")
    assert versions_of(GpuReading()) is None
    assert versions_of(None) is None
    assert versions_of(GpuReading((make_card(driver=Unknown()),))) is None
