"""The filter language: what matches, what is refused and where, on the sample fleet and on any text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_machine,
    make_offline,
    make_snapshot,
)
from fleettui.model.snapshot import DrainFlag, DrainState, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.filter_fields import FIELDS
from fleettui.view.filter_language import EVERYTHING, Filter, FilterError, caret_lines, parse_filter
from sample_fleet import sample_fleet

FLEET = sample_fleet()
ALL = [machine.name for machine in FLEET.machines]


def matching(line: str, fleet: object = FLEET) -> list[str]:
    parsed = parse_filter(line)
    assert isinstance(parsed, Filter), parsed
    return [machine.name for machine in parsed.select(fleet, NOW)]  # type: ignore[arg-type]


def refused(line: str) -> FilterError:
    parsed = parse_filter(line)
    assert isinstance(parsed, FilterError), f"{line!r} was taken"
    return parsed


def is_match(line: str, snapshot: MachineSnapshot) -> bool:
    return matching(line, make_fleet(snapshot)) == [snapshot.name]


@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_line_matches_everything(line: str) -> None:
    assert matching(line) == ALL


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ada", ["ada"]),
        ("ADA", ["ada"]),
        ("llama3.1:70b", ["ada"]),  # a model's name with its colon is a word
        ("qwen", ["ada", "bora", "dora"]),  # declared on ada, loaded on the others
        ("cpu", ["app-host"]),  # its tag
        ("app-", ["app-host"]),
        ("'app-host'", ["app-host"]),
        ("ada,bora", ["ada", "bora"]),
        ("ada|bora", ["ada", "bora"]),
        ("!gpu", ["app-host"]),
        ("!!ada", ["ada"]),
        ("nowhere", []),
        ("ada bora", []),
    ],
)
def test_words_are_parts_of_name_tag_or_model(line: str, names: list[str]) -> None:
    assert matching(line) == names


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("free>24", ["spark"]),  # cleo has exactly 24.0
        ("free>=24", ["cleo", "spark"]),
        ("free >= 24", ["cleo", "spark"]),
        ("free>=24GiB", ["cleo", "spark"]),
        ("free>=24576MiB", ["cleo", "spark"]),
        ("free=24", ["cleo"]),
        ("free=6.8", ["ada"]),  # 1.1 + 5.7
        ("gpufree<6", ["ada", "app-host", "dora"]),
        ("util<5", ["bora", "cleo", "spark"]),
        ("util>=63%", ["ada"]),  # (97 + 30) / 2 = 63.5
        ("util=unknown", ["app-host", "enno", "gina", "kiosk", "pve52", "zoe"]),
        ("gpus=2 temp>75", ["ada"]),
        ("vram>=40 vram<100", ["ada"]),  # bora's second card is missing; spark's memory is 121 GiB
        ("vram>85%", ["ada", "dora"]),
        ("used>150", ["dora"]),
        ("health!=healthy", [n for n in ALL if n not in {"ada", "app-host", "cleo", "spark"}]),
        ("health=degraded", ["bora"]),
        ("health=degraded,unhealthy", ["bora", "dora", "enno"]),
        ("health=degraded|unhealthy", ["bora", "dora", "enno"]),
        ("health=unknown", ["kiosk", "zoe"]),
        ("vram=0", ["app-host"]),
        ("trust:pending", ["kiosk"]),
        ("trust=key-changed", ["gina"]),
        ("maintenance:on", ["cleo"]),
        ("role=cpu-host", ["app-host"]),
        ("tag:cpu", ["app-host"]),
        ("tag:cp", []),
        ("tag~=cp", ["app-host"]),
        ("tag!=gpu", ["app-host"]),
        ("gpu~=h100", ["dora"]),
        ("gpu!~=4090 gpu!=unknown gpus>0", ["dora", "spark"]),
        ("model~=qwen", ["ada", "bora", "dora"]),
        ("loaded~=qwen", ["bora", "dora"]),
        ("loaded:llama3.1", ["ada"]),
        ("loaded=llama3.1", []),  # that is llama3.1:latest
        ("loaded=LLAMA3.1:70B", ["ada"]),
        ("loaded=nomic-embed-text", ["dora"]),
        ("installed:qwen3", ["ada", "dora"]),
        ("declared~=qwen", ["ada"]),
        ("models=0", ["cleo", "enno"]),
        ("expires<2m", ["app-host", "dora"]),
        ("user=mia", ["bora"]),
        ("note~='fan swap'", ["cleo"]),
        ("note~=missing", ["bora"]),
        ("age>1m", ["pve52"]),
        ("age=unknown", ["gina", "kiosk", "zoe"]),
        ("ram>120 ram<128", ["spark"]),
        ("cpu<13 ada", ["ada"]),
        ("tag:cpu | health=offline", ["app-host", "gina", "pve52"]),
        ("tag:gpu free>20 | tag:cpu", ["app-host", "cleo", "spark"]),
        ("name=ada,cleo !maintenance:on", ["ada"]),
    ],
)  # fmt: skip
def test_terms(line: str, names: list[str]) -> None:
    assert matching(line) == names


def test_unknown_matches_no_comparison_and_inverting_shows_the_rest() -> None:
    blind = make_snapshot("blind", cards=[make_card(free_gib=None, utilisation_percent=Unknown("[N/A]"))])
    for operator in ("=", "!=", ">", ">=", "<", "<="):
        assert not is_match(f"free{operator}24", blind)
        assert not is_match(f"util{operator}0", blind)
    assert is_match("free=unknown", blind)
    assert not is_match("free!=unknown", blind)
    assert is_match("!free>24", blind)
    idle = make_snapshot("idle")
    assert is_match("util=0", idle), "a real 0 is a number"
    assert is_match("util!=unknown", idle)


def test_what_a_machine_said_before_it_went_offline_is_unknown() -> None:
    gone = replace(make_snapshot("gone", loaded=[make_copy()]), health="offline")
    assert is_match("free=unknown util=unknown loaded=unknown", gone)
    assert not is_match("loaded:llama3.1", gone)
    assert not is_match("models=0", gone)
    assert is_match("health=offline name:gone", gone)
    assert not is_match("llama3.1", gone)


def test_an_engine_that_does_not_tell_is_not_an_empty_one() -> None:
    mute = make_snapshot("mute", engines=(make_engine(loaded=()),))
    mute = replace(mute, engines=(replace(mute.engines[0], loaded=Unknown("down")),))
    assert is_match("loaded=unknown models=unknown", mute)
    assert not is_match("models=0", mute)
    assert not is_match("loaded!=qwen", mute)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("planned", {"on", "draining", "planned"}),
        ("running", {"on", "draining", "running"}),
        ("blocked", {"on", "draining", "blocked"}),
        ("failed", {"on", "draining", "failed"}),
        ("cancelled", {"on", "draining", "cancelled"}),
        ("drained", {"on", "drained"}),
        (None, {"off"}),
    ],
)
def test_drain_words(state: DrainState | None, words: set[str]) -> None:
    flag = None if state is None else DrainFlag(state, "new card", "mia", NOW - 60)
    snapshot = make_snapshot(drain=flag)
    field = next(field for field in FIELDS if field.name == "drain")
    assert {word for word in field.choices if is_match(f"drain:{word}", snapshot)} == words


def test_keys_of_the_machine_file() -> None:
    machine = make_machine("ada")
    document = {**machine.document, "rack": "R12", "height_u": 4, "site": {"room": "b 1"}, "spare": True}
    snapshot = make_snapshot(machine=replace(machine, document=document))
    for line in (
        "file.rack=r12", "file.rack:r1", "file.rack!=r13", "file.height_u>3", "file.site.room='b 1'",
        "file.spare=true", "file.nothing=unknown", "file.hardware.gpu.model~=4090", "!file.height_u>4",
    ):  # fmt: skip
        assert is_match(line, snapshot), line
    for line in ("file.rack!=r12", "file.height_u>4", "file.rack>3", "file.nothing!=x", "file.rack.x=1"):
        assert not is_match(line, snapshot), line


@pytest.mark.parametrize(
    ("line", "column", "length", "words"),
    [
        ("fre>24", 0, 3, "there is no field fre: did you mean free?"),
        ("ada fre>24", 4, 3, "free"),
        ("tga:edge", 0, 3, "tag"),
        ("helth:x", 0, 5, "health"),
        ("!helth=x", 1, 5, "health"),
        ("free>lots", 5, 4, "24GiB"),
        ("free>24s", 5, 3, "24GiB"),
        ("free>", 5, 1, "a value is missing after `free>`"),
        ("free> ", 5, 1, "a value is missing"),
        ("age>5GiB", 4, 4, "1d4h"),
        ("free~=2", 4, 2, "free is a number"),
        ("free>1,2", 7, 1, "one value"),
        ("tag>3", 3, 1, "tag is a text"),
        ("health>3", 6, 1, "one of healthy"),
        ("health=ok", 7, 2, "one of healthy, degraded, unhealthy, offline, unknown"),
        ("health=helthy", 7, 6, "did you mean healthy?"),
        ("maintenance:yes", 12, 3, "on, off"),
        ("note~='fan", 6, 4, "quote"),
        ("ada |", 4, 1, "after it"),
        ("| ada", 0, 1, "before it"),
        ("ada | | bora", 6, 1, "before it"),
        ("!", 0, 1, "directly before"),
        ("ada ! bora", 4, 1, "directly before"),
        (">24", 0, 1, "name of a field is missing"),
        ("free==24", 5, 1, "after `free=` comes a value"),
        ("(ada | bora)", 0, 1, "no brackets"),
        ("tag:a,", 6, 1, "after `,`"),
        ("ada,free>24", 4, 7, "blank or `|`"),
        ("free>unknown", 5, 7, "free=unknown"),
        ("free=unknown,3", 5, 9, "stands alone"),
        ("file.x>many", 7, 4, "compares numbers"),
        ("xyzzy=1", 0, 5, "there is no field xyzzy: words alone"),
    ],
)
def test_errors_name_place_and_way_out(line: str, column: int, length: int, words: str) -> None:
    error = refused(line)
    assert (error.column, error.length) == (column, length)
    assert words in error.text


FAMILIES = """
llama llama3 qwen qwen3 phi phi3 gemma mistral mixtral deepseek codellama falcon yi solar orca
vicuna granite command nomic bge smollm starcoder dolphin olmo aya glm kimi grok magistral devstral
cogito minicpm reflection nemotron tinyllama stablelm wizardlm zephyr openchat internlm exaone marco
athene sailor hermes llava moondream mxbai snowflake all granite3 r1 gpt
"""


@pytest.mark.parametrize("family", FAMILIES.split())
def test_names_of_models_are_words_not_mistyped_fields(family: str) -> None:
    assert matching(f"{family}:7b") == []


def test_carets_stand_below_the_bad_place() -> None:
    line = "name:日本 fre>24"
    error = refused(line)
    assert caret_lines(line, error) == (line, "          ^^^")
    assert caret_lines("free>", refused("free>")) == ("free>", "     ^")
    assert caret_lines("\x1b[2Jx=1", FilterError(0, 1, "x"))[0] == " [2Jx=1"


def test_a_line_can_be_long_but_not_endless() -> None:
    assert isinstance(parse_filter("a " * 900), Filter)
    assert refused("a " * 1100).column == 2000


PIECES = st.sampled_from(
    [field.name for field in FIELDS]
    + [
        ":",
        "=",
        "!=",
        "~=",
        "!~=",
        ">",
        "<",
        ">=",
        "<=",
        "!",
        "|",
        ",",
        " ",
        "'",
        '"',
        "(",
        "file.",
        "file.a",
    ]
    + [
        "24",
        "5%",
        "1d4h",
        "10s",
        "unknown",
        "on",
        "ada",
        "qwen:7b",
        "日本",
        "\x1b",
        "1e400",
        "nan",
        "-1",
        ".",
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join)))
def test_any_text_gives_a_filter_or_a_place_in_it(line: str) -> None:
    parsed = parse_filter(line)
    if isinstance(parsed, Filter):
        chosen = parsed.select(FLEET, NOW)
        assert all(any(item is machine for machine in FLEET.machines) for item in chosen)
        assert parsed.is_empty == (not line.strip())
    else:
        assert 0 <= parsed.column <= len(line)
        assert 1 <= parsed.length <= len(line) + 1
        assert parsed.text.isprintable()
        caret_lines(line, parsed)


@given(st.sampled_from([field.name for field in FIELDS if field.kind == "number"]), st.floats(0, 1e6))
def test_a_number_is_above_below_or_unknown(name: str, limit: float) -> None:
    text = f"{limit:.3f}"
    above, below = set(matching(f"{name}>{text}")), set(matching(f"{name}<={text}"))
    unknown = set(matching(f"{name}=unknown"))
    assert above | below | unknown == set(ALL)
    assert not above & below
    assert not (above | below) & unknown
    assert set(matching(f"!{name}>{text}")) == set(ALL) - above


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_the_example_of_each_field_is_taken(field: object) -> None:
    assert isinstance(parse_filter(field.example), Filter)  # type: ignore[attr-defined]


def test_machines_come_in_the_fleets_order_and_everything_is_everything() -> None:
    assert [machine.name for machine in EVERYTHING.select(FLEET, NOW)] == ALL
    assert matching("pve52 | ada") == ["ada", "pve52"]
    assert matching("health=offline", make_fleet(make_offline("x"))) == ["x"]
