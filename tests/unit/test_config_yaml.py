"""YAML documents: values as written, lines, and everything that is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleettui.config.yaml_builder import dotted
from fleettui.config.yaml_document import MAX_BYTES, read_yaml
from fleettui.config.yaml_scalars import write_text
from fleettui.model.written import WrittenNumber, dump_json, read_float

LOADERS = [
    pytest.param(yaml.SafeLoader, id="pure"),
    pytest.param(
        getattr(yaml, "CSafeLoader", None),
        id="C",
        marks=pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML without libyaml"),
    ),
]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("on", "on"), ("yes", "yes"), ("no", "no"), ("Off", "Off"),
        ("~", None), ("", None), ("null", None), ("'null'", "null"), ('"true"', "true"),
        ("12", 12), ("-3", -3), ("+5", 5), ("0", 0), ("007", "007"), ("0o17", "0o17"), ("0x1F", "0x1F"),
        ("1_000", "1_000"), ("1:30", "1:30"), ("22:22:22", "22:22:22"), (".5", 0.5), ("1.", 1.0),
        (".inf", ".inf"), (".nan", ".nan"), ("1e999", "1e999"), ("01.5", "01.5"), ("--", "--"), (".", "."),
        ("2024-01-02", "2024-01-02"), ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"), ("=", "="),
        ("!!str 12", "12"), ("!!float 3", 3), ("!!timestamp 2024-01-02", "2024-01-02"), ("! 12", "12"),
        ("9" * 300, int("9" * 300)), ("9" * 6000, "9" * 6000), ("١٢", "١٢"),
    ],
)  # fmt: skip
def test_scalar_is_read_by_the_core_schema(text: str, value: object, loader: type) -> None:
    document = read_yaml(f"key: {text}\n".encode(), loader)
    assert document.problems == ()
    assert document.value == {"key": value}
    assert type(document.value["key"]) is type(value)


@pytest.mark.parametrize(
    "text",
    ["ada", "gpu-host", "/etc/x.yaml", "", "true", "No", "n", "null", "12", "1.5", "-", "a: b", "a #b", "a,b",
     "[x]", " a", "a\nb", "\"", "\\", "ctrl+q", "é", "//", "a.", "\u2028", "!x", "&x", "*"],
)  # fmt: skip
@pytest.mark.parametrize("reader", [read_yaml, yaml.safe_load], ids=["ours", "PyYAML, YAML 1.1"])
def test_a_written_text_is_read_back(text: str, reader: Callable[[bytes], Any]) -> None:
    document = reader(f"{{key: [{write_text(text)}]}}\n".encode())
    assert getattr(document, "value", document) == {"key": [text]}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("digits", ["1.10", "1e3", "1E+5", "-0.50", "100.0000000000000000000001", "3.0e0"])
def test_number_keeps_its_digits(digits: str, loader: type) -> None:
    value = read_yaml(f"a: [{digits}]".encode(), loader).value
    assert isinstance(value["a"][0], WrittenNumber)
    assert value["a"][0] == float(digits)
    assert dump_json(value) == f'{{"a": [{digits}]}}'


def test_key_keeps_its_spelling() -> None:
    assert read_yaml(b"1: a\ntrue: b\n1.10: c\n").value == {"1": "a", "true": "b", "1.10": "c"}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("data", "line", "key", "words"),
    [
        (b"", None, None, "empty"),
        (b"# only a comment\n", None, None, "empty"),
        (b"a: 1\nb:\n  c: 2\n  c: 3\n", 4, "b.c", "line 3"),
        (b"a: 1\n---\nb: 2\n", 2, None, "second document"),
        (b"a: [1, 2\n", None, None, "Not valid YAML"),
        (b"a: b: c\n", 1, None, "quotes"),
        (b"a:\n\t- b\n", 2, None, "tabs"),
        (b"a: 1\nb: \xc3\x28\n", 2, None, "UTF-8"),
        (b"a: 1\n\nb: \x1b[31m\n", 3, None, "U+001B"),
        (b"a: *nobody\n", 1, "a", "&nobody"),
        (b"a: &a [1, *a]\n", 1, "a[1]", "contains itself"),
        (b"a: !vault x\n", 1, "a", "!vault"),
        (b"a: !!python/object:os.system x\n", 1, "a", "remove it"),
        (b"a: !!int x\n", 1, "a", "no int"),
        (b"? [a, b]\n: 1\n", 1, None, "key"),
        (b"a: 1\n<<: 3\n", 2, "<<", "<<"),
        (b"a: " + b"[" * 80 + b"]" * 80, 1, "a[0][0][0]", "deep"),
        (b"[" * 5000, 1, None, ""),
        (b"a: '" + b"x" * MAX_BYTES + b"'", None, None, "1 MiB"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    data: bytes, line: int | None, key: str | None, words: str, loader: type
) -> None:
    document = read_yaml(data, loader)
    problem = document.problems[0]
    assert words in problem.message
    assert line is None or problem.line == line
    assert key is None or problem.key == key
    assert problem.message.endswith(".")


def test_every_duplicate_is_named_and_the_first_value_kept() -> None:
    document = read_yaml(b"a: 1\nb: 1\na: 2\nb: 3\n")
    assert [(problem.line, problem.key) for problem in document.problems] == [(3, "a"), (4, "b")]
    assert document.value == {"a": 1, "b": 1}


def test_aliases_and_merges_are_followed() -> None:
    document = read_yaml(b"base: &b {x: 1, y: 2}\nuse: *b\nmore: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n")
    assert document.problems == ()
    assert document.value["use"] == {"x": 1, "y": 2}
    assert document.value["more"] == {"x": 1, "y": 3}
    assert document.value["both"] == {"x": 1, "y": 2, "z": 4}
    assert document.line_of(("more", "x")) == 1


@pytest.mark.parametrize("link", ["[{}]", "{{{}}}"])
def test_alias_bomb_is_refused(link: str) -> None:
    lines = ["a0: &a0 [lol, lol, lol]"]
    for level in range(1, 40):
        body = ", ".join(f"{f'k{copy}: ' if '{{' in link else ''}*a{level - 1}" for copy in range(9))
        lines.append(f"a{level}: &a{level} {link.format(body)}")
    document = read_yaml("\n".join(lines).encode())
    assert document.value is None
    assert "Aliases" in document.problems[0].message


def test_line_of_every_path() -> None:
    document = read_yaml(
        b"# top\nname: a\nhardware:\n  gpu:\n    - model: x\n      vram_gb:\n        24\n    - {model: y}\n"
    )
    lines = {
        ("name",): 2,
        ("hardware",): 3,
        ("hardware", "gpu"): 4,
        ("hardware", "gpu", 0): 5,
        ("hardware", "gpu", 0, "vram_gb"): 6,
        ("hardware", "gpu", 1, "model"): 8,
        ("hardware", "gpu", 1, "vram_gb"): 8,  # absent: where its map stands
        ("network", "hostname"): 2,
    }
    assert {path: document.line_of(path) for path in lines} == lines


def test_byte_order_marks_are_understood() -> None:
    assert read_yaml(b"\xef\xbb\xbfname: a").value == {"name": "a"}
    assert read_yaml("name: ä".encode("utf-16")).value == {"name": "ä"}


def test_dotted_path_is_safe_to_print() -> None:
    assert dotted(("a", 0, "b\x1b[2J")) == "a[0].b\ufffd[2J"
    assert dotted((0, "x")) == "[0].x"


@pytest.mark.parametrize("loader", LOADERS)
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet="ab:-[]{}&*!|>'\"#?,%@`<~ \n\t.01", max_size=80).map(str.encode),
    )
)
def test_any_bytes_give_a_document_or_problems(data: bytes, loader: type) -> None:
    document = read_yaml(data, loader)
    assert document.value is not None or document.problems or data.strip()
    assert json.loads(dump_json(document.value), parse_float=read_float) == document.value


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from(["1.10", "1e3", "0.50"]).map(WrittenNumber),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(JSON_VALUES, st.booleans())
def test_written_numbers_survive_json(value: object, ensure_ascii: bool) -> None:
    text = dump_json(value, ensure_ascii=ensure_ascii)
    again = json.loads(text, parse_float=read_float)
    assert again == value
    assert dump_json(again, ensure_ascii=ensure_ascii) == text


def test_written_number_is_a_number() -> None:
    number = WrittenNumber("1.10")
    assert (number, number + 1, str(number), f"{number}") == (1.1, 2.1, "1.10", "1.10")
    assert pickle.loads(pickle.dumps(number)).text == "1.10"  # noqa: S301
