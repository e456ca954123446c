"""Condition of cards, MIG instances, Xid lines: the slow sections, as real drivers answer and around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from smi_stand_in import CARD

from fleettui.model.gpu import GpuCard, GpuReading, XidEvent
from fleettui.model.unknown import Unknown
from fleettui.probes.loops_gpu import CONDITION_FIELDS, XIDS_KEPT
from fleettui.probes.nvidia_condition import (
    condition_fields,
    condition_section,
    parse_condition,
    read_throttle,
)
from fleettui.probes.nvidia_lists import read_instances
from fleettui.probes.nvidia_xid import card_of_xid, parse_xids
from fleettui.probes.nvidia_xid_catalogue import meaning_of
from fleettui.probes.nvidia_xml import scan_log

SAMPLES = Path(__file__).parent.parent / "fixtures" / "samples" / "nvidia-smi"
LIST = (SAMPLES / "22-mig-parent-util-na-list.txt").read_bytes()
XML = (SAMPLES / "24-mig-xml.xml").read_bytes()
H100 = "GPU-000000a0-0000-4000-8000-0000000000a0"


def row(**changes: str) -> str:
    values = {**CARD, **{name.replace("__", "."): value for name, value in changes.items()}}
    return ", ".join(values[name] for name in CONDITION_FIELDS)


def test_a_healthy_card() -> None:
    (card,) = parse_condition(row().encode(), 0, CONDITION_FIELDS).cards
    assert (card.index, card.uuid, card.bus_id) == (0, CARD["uuid"], CARD["pci.bus_id"])
    assert (card.pcie_width, card.pcie_width_max, card.pcie_generation, card.pcie_generation_max) == (
        16,
        16,
        5,
        5,
    )
    assert (card.has_persistence, card.throttle, card.is_at_work) == (True, (), True)
    assert (card.ecc_uncorrected, card.ecc_corrected, card.is_retirement_pending) == (0, 0, Unknown("N/A"))
    assert (card.addressing_mode, card.compute_cap) == ("HMM", "9.0")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("exit_code", [0, 14, 255])
def test_rows_count_whatever_the_code_and_the_line_ends(end: str, exit_code: int) -> None:
    payload = f"WARNING: infoROM is corrupted at gpu 0000:3B:00.0{end or chr(10)}{row()}{end}".encode()
    (card,) = parse_condition(payload, exit_code, CONDITION_FIELDS).cards
    assert card.bus_id == CARD["pci.bus_id"]


def test_unknown_is_not_a_fault() -> None:
    """A desktop card on Windows: persistence, ECC and the link may all be without a value."""
    fields = [name for name in CONDITION_FIELDS if name not in ("index", "uuid", "pci.bus_id")]
    changes = {name.replace(".", "__"): "[N/A]" for name in fields}
    (card,) = parse_condition(row(**changes).encode(), 0, CONDITION_FIELDS).cards
    nothing = Unknown("N/A")
    assert (card.has_persistence, card.pcie_width, card.ecc_uncorrected, card.throttle) == (nothing,) * 4
    assert not card.is_at_work


@pytest.mark.parametrize("field", [name for name in CONDITION_FIELDS if name != "index"])
def test_any_field_may_be_refused(field: str) -> None:
    payload = f'Field "{field}" is not a valid field to query.\n\n'.encode()
    answer = parse_condition(payload, 2, CONDITION_FIELDS)
    assert (answer.cards, answer.refused) == ((), field)
    left = condition_fields({field})
    assert field not in left
    assert condition_section({field}) == "condition:" + ":".join(left)


def test_a_renamed_field_is_asked_by_its_old_name() -> None:
    new, old = "clocks_event_reasons.active", "clocks_throttle_reasons.active"
    assert old in condition_fields({new})
    assert not {new, old} & set(condition_fields({new, old}))
    fields = condition_fields({new})
    values = {**CARD, old: "0x0000000000000024"}
    (card,) = parse_condition(", ".join(values[name] for name in fields).encode(), 0, fields).cards
    assert card.throttle == ("thermal", "power cap")


@pytest.mark.parametrize("field", ["index", "never_asked", ""])
def test_what_was_not_asked_or_is_needed_is_not_left_out(field: str) -> None:
    answer = parse_condition(f'Field "{field}" is not a valid field to query.'.encode(), 2, CONDITION_FIELDS)
    assert answer.refused is None
    assert answer.error


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ()),  # idle
        ("0x0000000000000002", ()),  # clocks that somebody set
        ("0x0000000000000004", ("power cap",)),
        ("0x0000000000000020", ("thermal",)),
        ("0x0000000000000048", ("thermal",)),
        ("0x0000000000000088", ("power brake",)),
        ("0x0000000000000008", ("hardware slowdown",)),
        ("0x00000000000000EC", ("thermal", "power brake", "power cap")),
    ],
)
def test_throttle_masks(mask: str, reasons: tuple[str, ...]) -> None:
    assert read_throttle(mask) == reasons


@pytest.mark.parametrize("text", ["", "0x", "24", "0xZZ", "0x" + "F" * 17, "Active", "-0x4", "0x 4", "0x٤"])
def test_masks_that_are_none(text: str) -> None:
    assert isinstance(read_throttle(text), Unknown)


def xml_with(parts: list[tuple[int, int, int]]) -> bytes:
    """A document of an H100 whose instances have these (total, used, free) MiB, in the form of 590.48."""
    memory = (
        "<fb_memory_usage>\n<total>{} MiB</total>\n<reserved>0 MiB</reserved>\n<used>{} MiB</used>\n"
        "<free>{} MiB</free>\n</fb_memory_usage>\n"
        "<bar1_memory_usage>\n<total>65535 MiB</total>\n<used>0 MiB</used>\n<free>65535 MiB</free>\n"
        "</bar1_memory_usage>\n"
    )
    devices = "".join(
        f"<mig_device>\n<index>{index}</index>\n<gpu_instance_id>{index + 1}</gpu_instance_id>\n"
        f"{memory.format(*part)}</mig_device>\n"
        for index, part in enumerate(parts)
    )
    return (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n<driver_version>590.48.01</driver_version>\n'
        '<gpu id="00000000:00:09.0">\n<mig_mode>\n<current_mig>Enabled</current_mig>\n</mig_mode>\n'
        f"<mig_devices>\n{devices}</mig_devices>\n<uuid>{H100}</uuid>\n{memory.format(81559, 11125, 69956)}"
        "</gpu>\n</nvidia_smi_log>\n"
    ).encode()


MEMORY = [(40448, 11091, 29356), (20096, 17, 20079), (9984, 9, 9975), (9984, 9, 9975)]


def test_names_of_the_list_and_memory_of_the_xml_meet_by_number() -> None:
    instances = read_instances(LIST, xml_with(MEMORY))[H100]
    assert [(part.profile, part.used_mib, part.total_mib, part.free_mib) for part in instances] == [
        ("3g.40gb", 11091, 40448, 29356),
        ("2g.20gb", 17, 20096, 20079),
        ("1g.10gb", 9, 9984, 9975),
        ("1g.10gb", 9, 9984, 9975),
    ]
    assert instances[0].uuid == "MIG-00000000-0000-0000-0000-000000000000"


def test_order_of_the_list_does_not_count() -> None:
    head, *lines = LIST.splitlines()
    backwards = b"\r\n".join([head, *reversed(lines)])
    assert read_instances(backwards, xml_with(MEMORY)) == read_instances(LIST, xml_with(MEMORY))


def test_one_of_both_is_enough() -> None:
    (named,) = read_instances(LIST, b"").values()
    assert [part.profile for part in named] == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    assert all(isinstance(part.free_mib, Unknown) for part in named)
    (measured,) = read_instances(b"", xml_with(MEMORY)).values()
    assert [(part.profile, part.free_mib) for part in measured] == [
        ("GI 1", 29356),
        ("GI 2", 20079),
        ("GI 3", 9975),
        ("GI 4", 9975),
    ]


def test_free_memory_of_instances_is_as_printed() -> None:
    (parts,) = read_instances(b"", XML).values()
    assert [(part.total_mib, part.used_mib, part.free_mib) for part in parts] == [(19968, 19, 19948)] * 2


@pytest.mark.parametrize("kept", [0, 1, 2000, len(XML) - 30])
def test_a_document_that_is_cut_off_gives_no_instances(kept: int) -> None:
    """Fewer instances than there are would be wrong; the frame's length check sees most of this already."""
    assert read_instances(b"", XML[:kept]) == {}


def test_a_document_in_crlf_is_the_same() -> None:
    assert read_instances(b"", XML.replace(b"\n", b"\r\n")) == read_instances(b"", XML) != {}


def test_none_in_place_of_instances() -> None:
    payload = XML.replace(b"<mig_device>", b"<other>").replace(b"</mig_device>", b"</other>")
    assert read_instances(b"", payload) == {}


def test_entities_and_depth_are_no_danger() -> None:
    bomb = b'<!DOCTYPE x [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">\n]>\n' + XML
    assert read_instances(b"", bomb) == {}
    deep = XML.replace(b"<fb_memory_usage>", b"<a>\n" * 50_000 + b"<fb_memory_usage>", 1)
    assert [len(parts) for parts in read_instances(b"", deep).values()] == [2]
    (node,) = scan_log(XML.replace(b"NVIDIA A100-SXM4-40GB", b"A &amp; B &lt;i&gt; &#65;")) or ()
    assert node.texts["product_name"] == "A & B <i> &#65;"


def test_a_list_is_never_more_cards_than_it_has() -> None:
    found = read_instances(LIST + b"\nGPU x: no number (UUID: GPU-z)\n  MIG without a device\n", b"")
    assert {uuid: len(parts) for uuid, parts in found.items()} == {H100: 4}
    assert read_instances(b"No devices were found\n", b"") == {}
    old = b"GPU 1: A100 (UUID: GPU-aa)\n  MIG 1g.5gb Device 0: (UUID: MIG-GPU-aa/7/0)\n"
    assert read_instances(old, b"")["GPU-aa"][0].uuid == "MIG-GPU-aa/7/0"


DMESG = b"""5000.25
[  512.204417] NVRM: Xid (PCI:0000:3b:00): 79, pid=2104, name=python3, GPU has fallen off the bus.
[  900.100000] [ T2104] NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=7, name=x, Contained: SM (0x1).
Nov 30 14:03:11 host kernel: NVRM: Xid (PCI:0000:3b:00): 13, no stamp of ours
[ 4000.500000] host kernel: NVRM: Xid (0000:81:00): 31, Ch 00000012
"""


def test_xid_lines_of_dmesg_and_of_the_journal() -> None:
    answer = parse_xids(DMESG)
    assert not isinstance(answer, Unknown)
    uptime_s, events = answer
    assert uptime_s == 5000.25
    assert [(event.code, event.bus_id, event.after_boot_s) for event in events] == [
        (79, "0000:3b:00", 512.204417),
        (94, "0000:3b:00", 900.1),
        (31, "0000:81:00", 4000.5),
    ]
    assert events[0].text == "pid=2104, name=python3, GPU has fallen off the bus."


def test_a_log_that_may_not_be_read_is_unknown_and_an_empty_one_is_not() -> None:
    assert isinstance(parse_xids(b"", 1), Unknown)
    assert isinstance(parse_xids(b"", 0), Unknown)
    assert parse_xids(b"77.50\n") == (77.5, ())
    assert parse_xids(b"77.50") == (77.5, ())


def test_many_xids_and_endless_lines_are_bounded() -> None:
    line = b"[ 1.5] NVRM: Xid (PCI:0000:3b:00): 13, " + b"x" * 5000
    answer = parse_xids(b"77.50\n" + b"\n".join([line] * 5000))
    assert not isinstance(answer, Unknown)
    assert len(answer[1]) == XIDS_KEPT
    assert all(len(event.text) <= 160 for event in answer[1])


def test_the_card_of_an_xid_is_found_by_bus_id() -> None:
    reading = GpuReading((GpuCard(3, bus_id="00000000:3B:00.0"), GpuCard(4, bus_id=Unknown())))
    assert card_of_xid(reading, XidEvent(79, "0000:3b:00", 1.0, "")) == 3
    assert card_of_xid(reading, XidEvent(79, "0000:3c:00", 1.0, "")) is None
    assert card_of_xid(reading, XidEvent(79, Unknown(), 1.0, "")) is None
    assert card_of_xid(reading, XidEvent(79, "nonsense", 1.0, "")) is None


@pytest.mark.parametrize("code", [48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 145])
def test_faults_of_the_card(code: int) -> None:
    assert meaning_of(code).is_fatal


@pytest.mark.parametrize("code", [13, 31, 43, 45, 99_999])
def test_faults_of_programs(code: int) -> None:
    assert not meaning_of(code).is_fatal
