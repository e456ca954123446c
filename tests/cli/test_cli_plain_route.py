"""A plain `--route` is read without argparse, and never differently."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.cli.arguments import parse_arguments
from fleettui.cli.grammar import build_parser
from fleettui.cli.options import FOLDER_OPTIONS, POLLING_OPTIONS, ROUTE_OPTIONS, plain_route

NAMES = [name for names, _ in (*FOLDER_OPTIONS, *POLLING_OPTIONS, *ROUTE_OPTIONS) for name in names]
VALUES = ["llama3.1:8b", "a b", "", "0", "2s", "4GiB", "-1", "-", "--", "host", "json", "x=y", "nan", "1e9"]
WORDS = st.one_of(
    st.sampled_from([*NAMES, *NAMES, *VALUES, "--help", "-h", "--quie", "-qq", "--no-such", "--model"]),
    st.builds("{}={}".format, st.sampled_from([*NAMES, "--max"]), st.sampled_from(VALUES)),
    st.text(max_size=3),
)


@given(st.lists(WORDS, max_size=7))
def test_what_is_read_is_what_argparse_reads(words: list[str]) -> None:
    plain = plain_route(words)
    if plain is None:
        return
    with contextlib.redirect_stderr(io.StringIO()):
        assert vars(plain) == vars(build_parser().parse_args(["route", *words]))


@pytest.mark.parametrize(
    "words",
    [
        "llama3.1:8b",
        "m -q --no-lease --json --require-loaded --no-color",
        "--tag a --tag=b m --exclude c --format env --free-scope host",
        "m --max-age 60 --deadline=3s --min-free-vram 4GiB --interval 2",
        "--machines /m --state-dir /s m",
    ],
)
def test_plain_lines_need_no_argparse(words: str) -> None:
    plain = plain_route(words.split())
    assert plain is not None
    assert vars(plain) == vars(build_parser().parse_args(["route", *words.split()]))
    assert vars(parse_arguments(["--route", *words.split()])) == vars(plain)


@pytest.mark.parametrize(
    "words",
    [
        "", "--help", "m n", "m --max-age", "m --max-age -1", "m --max-age x", "m --format xml", "m -qh",
        "-- m", "m --quiet=1", "m --unknown", "m --form json", "m --tag --json", "m --deadline 0",
    ],
)  # fmt: skip
def test_the_rest_is_left_to_argparse(words: str) -> None:
    assert plain_route(words.split()) is None
