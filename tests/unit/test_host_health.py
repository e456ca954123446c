"""What a machine says of itself: its reasons, its record over frames, when it is asked, its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW, judged, make_card, make_fleet, make_machine, make_snapshot
from fleettui.fleet.facts_questions import FactsQuestions
from fleettui.fleet.facts_record import FactsRecord
from fleettui.fleet.gpu_record import GpuRecord
from fleettui.fleet.needs import EVERYTHING, FAST_FACTS, LATER_FACTS, ROUTING
from fleettui.model.readings import (
    BlockDevice,
    MemoryDetails,
    MemoryLimit,
    MemoryReading,
    NetInterface,
    NetReading,
    SystemReading,
)
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import card_memory, free_vram
from fleettui.probes.frames import Frame, Section
from fleettui.store.codec import decode_machine, encode
from fleettui.store.routing_part import decode_for_routing, encode_for_routing
from fleettui.view.cells import text_of
from fleettui.view.column_cells import ram
from fleettui.view.figures import net_rates
from fleettui.view.layout import fleet_layout
from fleettui.view.machine_page import hardware_page
from fleettui.view.machine_view import MachineView

GIB = 1 << 20
"""In KiB."""


def reasons_of(memory: MemoryReading, system: SystemReading | None = None) -> list[tuple[str, str]]:
    """Of a machine whose file says nothing of its RAM."""
    machine = make_machine(ram_gb=Unknown("not declared"))
    parts = {} if system is None else {"system": system}
    snapshot = judged(make_snapshot(machine=machine, memory=memory, **parts))
    return [(reason.severity, reason.text) for reason in snapshot.reasons]


# --- reasons

LITTLE = MemoryReading(64 * GIB, GIB, 8 * GIB, 8 * GIB)
FULL_BY_SWAP = "memory is full (swap is used up too): unload models or stop processes"
FULL_BY_WAITING = "memory is full (tasks wait for it): unload models or stop processes"


def test_little_memory_alone_is_no_alert() -> None:
    assert reasons_of(LITTLE) == []
    assert reasons_of(replace(LITTLE, details=MemoryDetails())) == []
    assert reasons_of(replace(LITTLE, swap_total_kib=0, swap_free_kib=0)) == []


def test_a_second_sign_makes_it_one() -> None:
    assert reasons_of(replace(LITTLE, swap_free_kib=GIB // 2)) == [("degraded", FULL_BY_SWAP)]
    waiting = MemoryDetails(stalled_some_percent=12.0, stalled_full_percent=3.0)
    assert reasons_of(replace(LITTLE, details=waiting)) == [("degraded", FULL_BY_WAITING)]
    assert reasons_of(replace(LITTLE, available_kib=30 * GIB, details=waiting)) == []
    assert reasons_of(replace(LITTLE, available_kib=30 * GIB, swap_free_kib=0)) == []


def test_memory_full_within_a_limit() -> None:
    limit = MemoryLimit(10 * GIB, 10 * GIB - 5)
    memory = MemoryReading(
        64 * GIB, 50 * GIB, 0, 0, limits=(limit,), details=MemoryDetails(stalled_some_percent=20.0)
    )
    note = "limited to 10.0 of 64.0 GiB of memory (container or cgroup)"
    assert reasons_of(memory) == [("degraded", FULL_BY_WAITING), ("note", note)]


def test_swapping_is_told_only_when_sure() -> None:
    stalled = MemoryDetails(stalled_some_percent=60.0, stalled_full_percent=25.0)
    text = "all tasks wait for memory a quarter of the time (swapping): unload models or stop processes"
    assert reasons_of(replace(LITTLE, available_kib=30 * GIB, details=stalled)) == [("degraded", text)]
    less = replace(stalled, stalled_full_percent=24.9)
    assert reasons_of(replace(LITTLE, available_kib=30 * GIB, details=less)) == []


@pytest.mark.parametrize(
    ("skew_s", "text"),
    [
        (5.0, None),
        (-4.9, None),
        (5.1, "clock is more than 5 s ahead of this computer's"),
        (-12.0, "clock is more than 10 s behind this computer's"),
        (61.0, "clock is more than a minute ahead of this computer's"),
        (-4000.0, "clock is more than an hour behind this computer's"),
        (1e6, "clock is more than a day ahead of this computer's"),
    ],
)
def test_clock_skew_is_a_note(skew_s: float, text: str | None) -> None:
    found = reasons_of(MemoryReading(), SystemReading(clock_skew_s=skew_s))
    hint = ": set up time synchronisation (chrony, NTP)"
    assert found == ([] if text is None else [("note", text + hint)])


def test_limits_of_a_container_are_one_note() -> None:
    memory = MemoryReading(1008 * GIB, 800 * GIB, 0, 0, limits=(MemoryLimit(90 * GIB, 30 * GIB),))
    found = reasons_of(memory, SystemReading(cores=64, core_limit=2.5))
    assert found == [
        ("note", "limited to 90.0 of 1008.0 GiB of memory and 2.5 of 64 processors (container or cgroup)")
    ]
    session = replace(memory, limits=(MemoryLimit(4 * GIB, GIB, is_session=True),))
    assert reasons_of(session) == []


# --- unified memory


def test_a_unified_card_ends_where_the_limit_does() -> None:
    card = replace(make_card(0), is_unified=True, total_mib=Unknown(), free_mib=Unknown(), used_mib=Unknown())
    memory = MemoryReading(120 * GIB, 100 * GIB, 0, 0, limits=(MemoryLimit(64 * GIB, 20 * GIB),))
    snapshot = make_snapshot(gpus=1, cards=[card], memory=memory)
    figures = card_memory(snapshot, card)
    assert (figures.total_mib, figures.free_mib) == (64 * 1024, 44 * 1024)
    assert free_vram(snapshot).best_mib == 44 * 1024
    record = GpuRecord()
    record.reading = snapshot.gpu
    filled = record.with_memory(memory)
    assert filled is not None
    assert (filled.cards[0].total_mib, filled.cards[0].free_mib) == (64 * 1024, 44 * 1024)
    stored = decode_for_routing(encode_for_routing(snapshot))
    assert stored is not None
    assert free_vram(stored).best_mib == 44 * 1024


# --- the record

FAST = {
    "stat": Section(0, b"cpu  100 0 0 900 0 0 0 0"),
    "load": Section(0, b"0.1 0.2 0.3 1/2 3"),
    "uptime": Section(0, b"100.5 90"),
    "mem": Section(
        0, b"MemTotal: 1000 kB\nMemFree: 5 kB\nMemAvailable: 400 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
    ),
    "net": Section(0, b"eno1: 5 1 0 0 0 0 0 0 7 1\nbr0: 5 1 0 0 0 0 0 0 7 1\n"),
}
NONE = Section(1, b"")


def test_slow_sections_stay_with_the_fast_ones() -> None:
    record = FactsRecord()
    sections = ("uname", "cpu", "host", "cgroup", "psi", "links", "clock", "blocks", "runtime")
    record.ask(sections, NOW)
    record.take(
        Frame(1, {
            **FAST,
            "uname": Section(0, b"Linux 6.1 x86_64"),
            "cpu": Section(0, b"processor : 0\nmodel name : X\n"),
            "host": Section(0, b"online 0-7\nallowed 0-3\ncontainer docker\n"),
            "cgroup": Section(0, b"cpu 600000 100000 /\n"),
            "psi": Section(0, b"some avg10=7.00 avg60=0\n"),
            "links": Section(0, b"device eno1\nbridge br0\n"),
            "clock": Section(0, b"%d.0" % (NOW + 60)),
            "blocks": Section(0, b"sys vda 8 0\n"),
            "runtime": Section(127, b""),
        }),
        NOW + 1,
    )  # fmt: skip
    first = record.system
    assert first is not None
    assert (first.cores, first.core_limit, first.container, first.clock_skew_s) == (8, 4.0, "docker", 59.0)
    assert isinstance(first.container_runtime, Unknown)
    assert not isinstance(first.block_devices, Unknown)
    record.take(Frame(2, FAST), NOW + 2)
    assert record.system is first
    assert record.memory is not None
    assert record.memory.details is not None
    assert record.memory.details.stalled_some_percent == 7.0
    assert record.net is not None
    assert [item.is_counted for item in record.net.interfaces] == [True, False]
    assert {source.state for name, source in record.sources.items() if name not in {"disks", "sockets"}} == {
        "ok"
    }


def test_half_a_second_later_the_tools_answer_beside_the_rates() -> None:
    record = FactsRecord()
    rates = {name: FAST[name] for name in ("stat", "load", "uptime", "net")}
    record.take(Frame(1, {**rates, "blocks": Section(0, b"sys vda 8 0\n")}), NOW)
    assert record.system is not None
    assert record.system.block_devices == (
        BlockDevice("vda", 4096, False, Unknown("not told"), Unknown("not told")),
    )


def test_one_missing_file_costs_its_source_only() -> None:
    record = FactsRecord()
    record.take(Frame(1, {**FAST, "uname": Section(0, b"Linux 6.1 x86_64"), "net": NONE, "mem": NONE}), NOW)
    states = {name: (source.state, source.error) for name, source in record.sources.items()}
    assert states["cpu"] == ("ok", None)
    assert states["net"] == ("error", "/proc/net/dev cannot be read")
    assert states["memory"] == ("error", "/proc/meminfo cannot be read")


def test_a_system_without_proc_stays_online_and_healthy() -> None:
    record = FactsRecord()
    nothing = dict.fromkeys(FAST, NONE)
    record.take(Frame(1, {**nothing, "uname": Section(0, b"FreeBSD 14.1-RELEASE amd64")}), NOW)
    record.take(Frame(2, nothing), NOW)
    statuses = {
        name: source.freeze() for name, source in record.sources.items() if name not in {"disks", "sockets"}
    }
    assert {name: status.error for name, status in statuses.items()} == {
        "cpu": "CPU not available on FreeBSD",
        "memory": "memory not available on FreeBSD",
        "net": "network rates not available on FreeBSD",
        "system": None,
    }
    bare = MachineSnapshot(make_machine(gpus=0), link=make_snapshot().link, sources=statuses, last_seen=NOW)
    assert (judged(bare).health, judged(bare).reasons) == ("healthy", ())


def test_a_tool_that_hangs_costs_what_it_tells() -> None:
    record = FactsRecord()
    record.take(Frame(1, FAST), NOW)
    record.hang(("stat", "blocks", "runtime"), NOW)
    assert record.sources["disks"].state == "never"
    assert record.system is not None
    assert isinstance(record.system.block_devices, Unknown)
    record.hang(("stat", "disks"), NOW)
    assert record.sources["disks"].state == "error"


# --- questions


def ask(questions: FactsQuestions, now: float) -> tuple[str, ...]:
    sections = questions.due(now)
    questions.note_asked(sections, now)
    return sections


def test_each_section_in_its_own_period() -> None:
    questions = FactsQuestions(EVERYTHING)
    times: dict[str, list[int]] = {}
    for tick in range(0, 124, 2):
        for name in ask(questions, 1000.0 + tick):
            times.setdefault(name, []).append(tick)
    assert {name: len(found) for name, found in times.items() if name in FAST_FACTS} == dict.fromkeys(
        FAST_FACTS, 62
    )
    assert [times[name] for name in ("uname", "host", "blocks", "runtime")] == [[0], [0], [2], [2]]
    assert times["clock"] == times["links"] == [0, 60, 120]
    assert times["disks"] == [2, 32, 62, 92, 122]
    assert times["psi"] == times["arc"] == list(range(0, 124, 10))


def test_an_ordinary_tick_is_the_same_tuple() -> None:
    questions = FactsQuestions(EVERYTHING)
    ask(questions, 1000.0)
    ask(questions, 1002.0)
    assert ask(questions, 1004.0) is FAST_FACTS


def test_the_second_sample_brings_the_tools() -> None:
    questions = FactsQuestions(EVERYTHING)
    ask(questions, 1000.0)
    assert set(questions.second_sample()) >= {"stat", "net", "disks", *LATER_FACTS}
    questions.note_asked(questions.second_sample(), 1000.5)
    assert not set(LATER_FACTS) & {*questions.second_sample(), *ask(questions, 1002.0)}


def test_what_hangs_is_left_alone_until_the_next_connection() -> None:
    questions = FactsQuestions(EVERYTHING)
    ask(questions, 1000.0)
    assert not questions.give_up_hanging(FAST_FACTS)
    assert questions.give_up_hanging(("stat", "blocks"))
    later = {name for tick in range(2, 200, 2) for name in ask(questions, 1000.0 + tick)}
    assert "blocks" not in later
    assert {"runtime", "disks", "psi"} <= later
    questions.begin()
    assert "disks" not in ask(questions, 2000.0), "the first answer shows that the shell answers at all"
    assert {"disks", "blocks"} <= set(ask(questions, 2002.0))


def test_disks_are_asked_only_where_needed() -> None:
    questions = FactsQuestions(ROUTING)
    assert "disks" not in {name for tick in range(0, 100, 2) for name in ask(questions, 1000.0 + tick)}


# --- what is shown


def test_sums_leave_out_what_another_card_carries() -> None:
    interfaces = (NetInterface("eno1", 100.0, 10.0), NetInterface("br0", 100.0, 10.0, is_counted=False))
    assert net_rates(make_snapshot(net=NetReading(interfaces))) == (100.0, 10.0)


@pytest.mark.parametrize(("is_low", "is_alarm"), [(False, True), (True, False)])
def test_the_ram_column_raises_no_alarm_of_its_own_in_a_container(is_low: bool, is_alarm: bool) -> None:
    memory = MemoryReading(4194304, 4760, 0, 0, is_available_low=is_low)
    snapshot = make_snapshot(memory=memory)
    view = MachineView(snapshot, NOW, fleet_layout(make_fleet(snapshot), 120), False)
    assert (ram(view, 12)[0].tone in ("warn", "bad")) is is_alarm


def page_lines(snapshot: MachineSnapshot, title: str) -> list[str]:
    page = {
        section.title: section.lines
        for section in hardware_page(snapshot, NOW, fleet_layout(make_fleet(snapshot), 100))
    }
    return [text_of(cells).rstrip() for cells in page[title]]


def test_the_page_of_a_container_on_zfs() -> None:
    details = MemoryDetails(
        arc_kib=14925119488 // 1024, arc_shrinkable_kib=12822386048 // 1024, limit_cache_kib=GIB,
        stalled_some_percent=3.0, stalled_full_percent=0.0, zram_kib=8 * GIB,
    )  # fmt: skip
    memory = MemoryReading(
        65710420, 26828796, 8 * GIB, 6 * GIB, is_available_low=True,
        limits=(MemoryLimit(48 * GIB, 20 * GIB), MemoryLimit(4 * GIB, GIB, is_session=True)), details=details,
    )  # fmt: skip
    devices = (
        BlockDevice("nvme0n1", 1_920_383_410_176, False, "KXG60ZNV2T04"),
        BlockDevice("sda", 8_001_563_222_016, True, "HGST HUS728T8TAL"),
        BlockDevice("sdb", 8_001_563_222_016, True, "HGST HUS728T8TAL"),
        BlockDevice("vda", 42_949_672_960),
    )
    system = SystemReading(
        "Debian 13", "6.12", "x86_64", "AMD EPYC", 64, 8.0, "docker", "Docker 27.3.1",
        clock_skew_s=-7.2, block_devices=devices,
    )  # fmt: skip
    assert page_lines(make_snapshot(memory=memory, system=system), "System") == [
        "system      Debian 13, in docker",
        "kernel      6.12, x86_64",
        "driver      NVIDIA 580.126.09",
        "containers  Docker 27.3.1",
        "engines     Ollama 0.33.0  port 11434",
        "processor   AMD EPYC, 64 threads, limit 8",
        "clock       7 s behind this computer's",
        "CPU         12 %  load 1.20 1.00 0.80  up 10d",
        "RAM         37/63 GiB  swap 2.0/8.0 (zram)",
        "            limit 48.0 GiB, 28.0 GiB of it free",
        "            login sessions only: limit 4.0 GiB, 3.0 GiB of it free",
        "            container memory: available may be too low",
        "            ZFS ARC 13.9 GiB, 11.9 GiB of it can shrink",
        "            page cache 1.0 GiB counts against the limit and can go",
        "            25.6 GiB free, up to 29.0 GiB if caches shrink",
        "            tasks waited for memory 3 % of the last 10 s",
        "devices     1.9 TB SSD KXG60ZNV2T04  nvme0n1",
        "            2 × 8.0 TB HDD HGST HUS728T8TAL  sda sdb",
        "            43 GB disk  vda",
    ]
    stored = decode_machine(encode(make_snapshot(memory=memory, system=system)))
    assert stored is not None
    assert (stored.memory, stored.system) == (memory, system)


def test_the_page_of_the_zfs_sample() -> None:
    details = MemoryDetails(arc_kib=14925119488 // 1024, arc_shrinkable_kib=12822386048 // 1024)
    memory = MemoryReading(65710420, 26828796, 0, 0, details=details)
    lines = page_lines(make_snapshot(memory=memory), "System")
    assert lines[7:] == [
        "RAM         37/63 GiB",
        "            ZFS ARC 13.9 GiB, 11.9 GiB of it can shrink",
        "            25.6 GiB free, up to 37.5 GiB if caches shrink",
    ]
