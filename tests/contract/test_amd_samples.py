"""AMD: published outputs of amd-smi, rocm-smi and sysfs, read right; their neighbours; any bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes import amd
from fleettui.probes.amd_json import read_document, read_mib, read_quantity
from fleettui.probes.amd_problems import read_amd_problem, split_tool
from fleettui.probes.amd_processes import parse_amd_processes
from fleettui.probes.amd_sysfs import AmdFacts, parse_kinds, parse_sysfs, parse_unbound
from fleettui.probes.amd_tools import parse_tool

SAMPLES = Path(__file__).parents[1] / "fixtures" / "amd"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def known(value: Maybe[object]) -> object:
    """The value; None where it is unknown."""
    return None if isinstance(value, Unknown) else value


def figures(facts: AmdFacts) -> tuple[object, ...]:
    """(total, used, busy, temperature, power, limit, fan)."""
    return tuple(
        known(value)
        for value in (
            facts.total_mib,
            facts.used_mib,
            facts.utilisation_percent,
            facts.temperature_c,
            facts.power_w,
            facts.power_limit_w,
            facts.fan_percent,
        )
    )


# -- amd-smi ------------------------------------------------------------------------------------------


def test_a_plain_list_of_rocm_6() -> None:
    (card,) = parse_tool(sample("smi-static-navi23.json"), b"", sample("smi-metric-navi23.json"))
    assert figures(card) == (8176, 202, 1, 36, 6.0, 100.0, 0)
    assert (card.bus_id, card.tool_index, card.driver) == ("0000:0b:00.0", 0, "7.0.0-3-pve")
    assert card.name == "Navi 23 [Radeon RX 6600/6600 XT"
    assert (card.gtt_total_mib, card.gtt_used_mib) == (64357, 65)
    (made,) = amd.make_cards((card,))
    assert (made.total_mib, made.used_mib, made.free_mib) == (8176, 202, 7974), "what amd-smi prints as free"
    assert (made.vendor, made.is_unified, made.suspect) == ("amd", False, ())


def test_a_document_of_rocm_7_behind_a_warning() -> None:
    first, second = parse_tool(b"", sample("smi-list-rocm7.json"), sample("smi-metric-rocm7.json"))
    assert figures(first) == (30576, 20450, 91, 54, 246.0, None, 50)
    assert figures(second) == (30576, 59, 1, 38, 13.0, None, 0)
    assert (first.uuid, second.bus_id) == ("76ff73a1-0000-1000-80a0-8c022586fed6", "0000:83:00.0")


def test_an_integrated_part_has_no_power_limit_and_its_bus_id() -> None:
    (card,) = parse_tool(sample("smi-static-strix-halo.json"), sample("smi-list-strix-halo.json"), b"")
    assert figures(card) == (32768, None, None, None, None, None, None)
    assert (card.bus_id, card.driver) == ("0000:c4:00.0", "6.17.1-300.fc43.x86_64")
    assert str(card.name).startswith("Strix Halo [Radeon Graphics")


# -- rocm-smi -----------------------------------------------------------------------------------------


def test_rocm_smi_of_a_consumer_card() -> None:
    (card,) = parse_tool(b"", b"", sample("rocm-7900xt.json"))
    assert figures(card) == (20464, 26, 0, None, None, None, None)
    assert (card.name, card.tool_index) == ("Radeon RX 7900 XT", 0)
    assert known(card.bus_id) is None


def test_rocm_smi_of_an_integrated_part_behind_a_warning() -> None:
    (card,) = parse_tool(b"", b"", sample("rocm-780m.json"))
    assert figures(card) == (None, None, 19, 31, 7.222, None, None)
    assert (card.name, card.bus_id) == ("Phoenix3", "0000:C4:00.0")
    assert known(card.uuid) is None


def test_rocm_smi_of_rocm_5_writes_other_letters() -> None:
    (card,) = parse_tool(sample("rocm-mi200.json"), b"", b"")
    assert figures(card) == (None, None, 100, 41, 128.0, 560.0, None)
    assert card.name == "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2"
    assert (card.driver, card.uuid) == ("6.2.4", "GPU-9f4be4b5db9a1c5e")


# -- sysfs --------------------------------------------------------------------------------------------


def test_sysfs_in_the_order_of_the_bus_ids() -> None:
    first, second = parse_sysfs(sample("sysfs-two-cards.txt"))
    assert [first.bus_id, second.bus_id] == ["0000:03:00.0", "0000:83:00.0"]
    assert figures(first) == (30576, 20450, 91, 54, 246.0, 300.0, 50)
    assert figures(second) == (30576, 60, 1, 38, 13.0, 300.0, 0)
    cards = amd.make_cards((first, second))
    assert [(card.index, card.name) for card in cards] == [(0, amd.MEMORY_ONLY), (1, amd.MEMORY_ONLY)]
    assert cards[0].uuid == "GPU-76ff8c022586fed6"


def test_cards_of_both_sources_are_joined_by_bus_id_whatever_the_order() -> None:
    listed = json.loads(sample("smi-list-rocm7.json"))
    listed[0]["gpu"], listed[1]["gpu"] = 1, 0  # the tool counts the other way round
    tool = parse_tool(b"", json.dumps(listed).encode(), b"")
    cards = amd.make_cards(amd.merge(parse_sysfs(sample("sysfs-two-cards.txt")), tool))
    assert [(card.index, card.bus_id, card.used_mib) for card in cards] == [
        (0, "0000:83:00.0", 60),
        (1, "0000:03:00.0", 20450),
    ]
    assert cards[1].uuid == "76ff73a1-0000-1000-80a0-8c022586fed6"


def test_numbers_follow_those_of_another_vendor() -> None:
    cards = amd.make_cards(parse_sysfs(sample("sysfs-two-cards.txt")), first_index=2)
    assert [card.index for card in cards] == [2, 3]


def test_a_uuid_that_two_cards_share_is_none() -> None:
    facts = tuple(
        AmdFacts(bus_id=f"0000:0{bus}:00.0", uuid="00ff1586-0000-1000-8000-000000000000") for bus in (3, 4)
    )
    assert [card.uuid for card in amd.make_cards(facts)] == ["0000:03:00.0", "0000:04:00.0"]


def test_a_small_carve_out_counts_with_the_memory_it_may_address() -> None:
    """Strix Halo with 512 MiB set aside: models go into main memory, and MemAvailable limits what is free."""
    facts = amd.with_kinds(
        parse_sysfs(sample("sysfs-strix-halo.txt")), parse_kinds(sample("kinds-strix-halo.txt"))
    )
    (card,) = amd.make_cards(facts)
    assert card.is_unified
    assert (card.total_mib, card.used_mib, card.free_mib) == (512 + 98304, 210 + 40960, 57646)


def test_a_large_carve_out_counts_alone() -> None:
    facts = AmdFacts(
        bus_id="0000:c4:00.0",
        total_mib=98304,
        used_mib=1000,
        gtt_total_mib=16000,
        gtt_used_mib=5,
        is_integrated=True,
    )
    (card,) = amd.make_cards((facts,))
    assert (card.total_mib, card.used_mib, card.free_mib, card.is_unified) == (98304, 1000, 97304, False)


def test_a_real_card_never_counts_main_memory() -> None:
    (card,) = amd.make_cards(
        amd.with_kinds(
            parse_tool(sample("smi-static-navi23.json"), b"", sample("smi-metric-navi23.json")),
            {(0, 0x0B, 0, 0): False},
        )
    )
    assert (card.total_mib, card.is_unified) == (8176, False)


@pytest.mark.parametrize(
    ("others", "tool", "declared", "cpu_only", "counts"),
    [
        (True, True, True, False, False),
        (False, True, False, False, True),
        (False, False, True, False, True),
        (False, False, False, False, False),
        (False, True, False, True, False),
    ],
)
def test_an_integrated_part_counts_only_where_somebody_computes_on_it(
    others: bool, tool: bool, declared: bool, cpu_only: bool, counts: bool
) -> None:
    facts = AmdFacts(is_integrated=True)
    assert counts == amd.counts_as_card(
        facts, has_other_cards=others, has_tool=tool, is_declared=declared, is_cpu_only=cpu_only
    )
    assert amd.counts_as_card(
        AmdFacts(), has_other_cards=others, has_tool=tool, is_declared=declared, is_cpu_only=cpu_only
    )


def test_kinds_and_cards_without_a_driver() -> None:
    text = (
        b"0000:03:00.0  96 0 1 3\n0000:c4:00.0 120 0 3 0\n0000:05:00.0 128 0 2 2\nno 1 2 9 9\n0000:06:00.0 \n"
    )
    assert list(parse_kinds(text).values()) == [False, True, True]
    assert parse_unbound(b"unbound 0000:03:00.0\nunbound nothing\nother 0000:04:00.0\n") == ("0000:03:00.0",)


# -- processes ----------------------------------------------------------------------------------------

UUIDS: dict[int, Maybe[str]] = {0: "A", 1: "B"}


def test_processes_with_graphics_memory_on_their_cards() -> None:
    reading = parse_amd_processes(b"amd-smi\n" + sample("smi-process-rocm7.json"), 0, UUIDS)
    assert not isinstance(reading, Unknown)
    assert [(p.gpu_uuid, p.pid, p.name, p.used_mib) for p in reading.processes] == [
        ("A", 2266127, "/usr/local/bin/ollama", 19456),
        ("B", 2168275, "/usr/bin/python3.12", 62),
    ]


def test_one_figure_under_several_cards_counts_once_and_names_none() -> None:
    reading = parse_amd_processes(sample("smi-process-same-under-each.json"), 0, UUIDS)
    assert not isinstance(reading, Unknown)
    ((process),) = reading.processes
    assert (known(process.gpu_uuid), process.pid, process.used_mib) == (None, 132174, 30444)


@pytest.mark.parametrize(
    "payload", [sample("smi-process-none.json"), sample("rocm-no-pids.txt"), b"[]", b"{}"]
)
def test_no_processes_is_an_empty_list(payload: bytes) -> None:
    reading = parse_amd_processes(payload, 0, UUIDS)
    assert not isinstance(reading, Unknown)
    assert reading.processes == ()


def test_processes_of_rocm_smi() -> None:
    reading = parse_amd_processes(b"rocm-smi\n" + sample("rocm-pids.json"), 0, UUIDS)
    assert not isinstance(reading, Unknown)
    found = [(p.pid, p.name, known(p.used_mib), known(p.gpu_uuid)) for p in reading.processes]
    assert found == [(132174, "llama-server", 14356, None), (55573, "gmx_mpi", None, None)]
    alone = parse_amd_processes(sample("rocm-pids.json"), 0, {0: "A"})
    assert not isinstance(alone, Unknown)
    assert alone.processes[0].gpu_uuid == "A"


# -- sentences ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("rocm-no-cards.txt", "no_devices", "finds no AMD card"),
        ("smi-no-devices.txt", "no_devices", "finds no AMD card"),
        ("smi-driver-not-loaded.txt", "driver_not_running", "modprobe amdgpu"),
        ("rocm-driver-not-loaded.txt", "driver_not_running", "modprobe amdgpu"),
        ("smi-no-permission.txt", "no_permission", "groups render and video"),
    ],
)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_sentences_in_the_operators_words(name: str, code: str, words: str, newline: bytes) -> None:
    document, lines = read_document(sample(name).replace(b"\n", newline))
    assert document is None
    assert parse_tool(sample(name), b"", b"") == ()
    problem = read_amd_problem("amd-smi", lines, 0)
    assert problem.code == code
    assert words in problem.text


@pytest.mark.parametrize(
    ("exit_code", "code"),
    [(75, "hung"), (124, "timed_out"), (127, "no_tool"), (137, "killed"), (1, "unreadable")],
)
def test_exit_codes_where_the_text_says_nothing(exit_code: int, code: str) -> None:
    assert read_amd_problem("rocm-smi", (), exit_code).code == code


def test_the_first_line_names_the_tool() -> None:
    assert split_tool(b"amd-smi\n[]") == ("amd-smi", b"[]")
    assert split_tool(b"rocm-smi\n") == ("rocm-smi", b"")
    assert split_tool(b"[]") == ("", b"[]")


# -- neighbours ---------------------------------------------------------------------------------------

DOCUMENTS = [path.name for path in sorted(SAMPLES.glob("*.json"))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_cut_short_gives_nothing(name: str) -> None:
    text = sample(name)
    whole = text.rstrip()
    for cut in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        assert parse_tool(whole[:cut], b"", b"") == ()
        reading = parse_amd_processes(whole[:cut], 124, UUIDS)
        assert isinstance(reading, Unknown)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(
    "before", [b"", b"WARNING: odd\r\n", b"[WARNING] odd\n{ not json\n\n", b"\xff\x00\n"]
)
def test_lines_around_a_document_change_nothing(name: str, before: bytes) -> None:
    text = sample(name)
    crlf = before + text.replace(b"\n", b"\r\n") + b"WARNING: done\n"
    assert parse_tool(crlf, b"", b"") == parse_tool(text, b"", b"")
    assert parse_amd_processes(crlf, 0, UUIDS) == parse_amd_processes(text, 0, UUIDS)


@pytest.mark.parametrize(
    ("value", "mib"),
    [
        ({"value": 16, "unit": "GB"}, 16384),
        ("16 GB", 16384),
        ("16 GiB", 16384),
        ("8176 MB", 8176),
        ({"value": "8176", "unit": "MB"}, 8176),
        (8176, 8176),
        ("8176", 8176),
        ({"value": 6228000, "unit": "B"}, 5),
        ({"value": 1.9, "unit": "GB"}, 1945),
        (0, 0),
    ],
)
def test_memory_in_every_spelling(value: object, mib: int) -> None:
    assert read_mib(value) == mib


@pytest.mark.parametrize(
    "value",
    ["N/A", "", None, {}, [], {"value": "N/A", "unit": "MB"}, {"unit": "MB"}, True, -1, 1e300, "nan", "inf",
     "1e999", "16 bananas", {"value": 16, "unit": 5}, {"value": {"value": 1}}, "0x10", "1_000", "٣"],
)  # fmt: skip
def test_what_is_no_amount_of_memory_is_unknown(value: object) -> None:
    assert isinstance(read_mib(value), Unknown)


@pytest.mark.parametrize(
    "value", ["45 W", "45.0", 45, {"value": 45, "unit": "W"}, {"value": "45", "unit": "W"}]
)
def test_watts_in_every_spelling(value: object) -> None:
    assert read_quantity(value)[0] == 45


ODD = [
    b"", b"[]", b"{}", b"null", b"[[]]", b"[1]", b'["gpu"]', b'{"gpu_data": 5}', b'{"gpu_data": [null, {}]}',
    b'[{"gpu": "0"}]', b'[{"gpu": true}]', b'[{"gpu": -1}]', b'[{"gpu": 1e9}]', b'{"card0": []}',
    b'{"cardX": {}}',
    b"[" * 100_000, b'{"a":' * 50_000, b"[" + b"9" * 10_000 + b"]", b'[{"gpu": NaN}]',
    b'{"system": {"PID": "x", "PID12": 5, "PIDx": "a, b, c, d, e", "PID7": "one"}}',
]  # fmt: skip


@pytest.mark.parametrize("payload", ODD, ids=range(len(ODD)))
def test_odd_documents_have_no_cards(payload: bytes) -> None:
    assert parse_tool(payload, payload, payload) == ()
    reading = parse_amd_processes(payload, 0, UUIDS)
    assert isinstance(reading, Unknown) or reading.processes == ()


def test_unexpected_keys_and_missing_ones() -> None:
    metric = b'[{"gpu": 3, "later": {"a": [1, 2]}, "usage": "N/A", "mem_usage": {"used_vram": {"value": 5}}}]'
    (card,) = parse_tool(b"", b"", metric)
    assert figures(card) == (None, 5, None, None, None, None, None)
    (made,) = amd.make_cards((card,))
    assert (made.index, known(made.free_mib), made.name) == (3, None, "AMD GPU")


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 255))
def test_any_bytes(first: bytes, second: bytes, exit_code: int) -> None:
    facts = amd.with_kinds(
        amd.merge(parse_sysfs(first), parse_tool(first, second, first)), parse_kinds(second)
    )
    amd.make_cards(facts)
    parse_amd_processes(first, exit_code, UUIDS)
    _, lines = read_document(first)
    read_amd_problem("amd-smi", lines, exit_code)
    parse_unbound(first)


@given(st.data())
def test_a_damaged_sample_invents_no_number(data: st.DataObject) -> None:
    text = bytearray(sample(data.draw(st.sampled_from([*DOCUMENTS, "sysfs-two-cards.txt"]))))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    payload = bytes(text)
    printed = {int(number) for number in re.findall(rb"[0-9]+", payload) if len(number) < 19}
    for card in (*parse_tool(payload, b"", b""), *parse_tool(b"", b"", payload)):
        for value in (card.total_mib, card.used_mib):
            if not isinstance(value, Unknown):
                scaled = {n >> shift for n in printed for shift in (0, 10, 20)} | {n << 10 for n in printed}
                assert (
                    value in scaled | {n << 20 for n in printed} | {0} or b"." in payload or b"e" in payload
                )
