"""The answer of routing: lines for stderr, formats for stdout, the JSON document."""

# ruff: noqa: E501 - whole lines of wide output

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from builders import (
    NOW,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_machine,
    make_offline,
    make_snapshot,
)
from fleettui.decide.routing import decide_route
from fleettui.model.route import RouteDecision, RouteQuery
from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.route_text import ANSWER_FORMATS, format_answer, route_document, route_lines
from sample_fleet import sample_fleet

RESIDENT = """
route llama3.1:70b  (1 eligible of 11, data 1.0 s old)
 1 ada       tier 0  resident, 100 % GPU, ctx 32768  free 5.7 GiB (GPU 1)
 - app-host  not_installed
 - bora      not_installed
 - cleo      maintenance "fan swap" by mia since 12:03 UTC; not_installed
 - dora      not_installed
 - enno      not_installed
 - gina      key_changed: waits for re-approval
 - kiosk     not_approved: pending, host key not approved yet
 - pve52     offline: no answer on port 22 (timeout), last heard 240 s ago
 - spark     not_installed
 - zoe       timeout: no answer yet
"""
COLD = """
route qwen3:8b  (1 eligible of 11, data 1.0 s old)
 1 ada       tier 5  installed, ~11 s cold (1.5 GB/s assumed), needs 7.2 GiB = file size x 1.2 (assumed) on GPUs 0, 1  free 5.7 GiB (GPU 1)  evicts llama3.1:70b
 - app-host  not_installed
 - bora      not_installed
 - cleo      maintenance "fan swap" by mia since 12:03 UTC; not_installed
 - dora      gpu_unknown: GPU data 300 s old
 - enno      not_installed
 - gina      key_changed: waits for re-approval
 - kiosk     not_approved: pending, host key not approved yet
 - pve52     offline: no answer on port 22 (timeout), last heard 240 s ago
 - spark     not_installed
 - zoe       timeout: no answer yet
note: cold: qwen3:8b is not loaded on ada, the first request waits until it is
"""
REFUSED = """
route qwen3:8b  (0 eligible of 11)
 - ada       not_loaded (installed)
 - app-host  not_installed
 - bora      not_installed
 - cleo      maintenance "fan swap" by mia since 12:03 UTC; not_installed
 - dora      not_loaded (installed); gpu_unknown: GPU data 300 s old
 - enno      not_installed
 - gina      key_changed: waits for re-approval
 - kiosk     not_approved: pending, host key not approved yet
 - pve52     offline: no answer on port 22 (timeout), last heard 240 s ago
 - spark     not_installed
 - zoe       timeout: no answer yet
error: no machine has 'qwen3:8b' loaded with 4.0 GiB of free VRAM now
"""
UNKNOWN = """
route lama3.1:8b  (0 eligible of 1)
 - ada  not_installed
error: no machine knows 'lama3.1:8b'; nearest: llama3.1:8b
"""
UNREACHABLE = """
route llama3.1:8b  (0 eligible of 1)
 - pve52  offline: no answer on port 22 (timeout), last heard 240 s ago
error: no machine gave usable data, so nothing is known of 'llama3.1:8b'; check the network
"""


def lines_of(decision: RouteDecision) -> str:
    return "\n".join(["", *route_lines(decision), ""])


def ask(*machines: MachineSnapshot, model: str = "llama3.1:70b", **wishes: Any) -> RouteDecision:
    return decide_route(make_fleet(*machines), RouteQuery(model, **wishes), NOW)


@pytest.mark.parametrize(
    ("query", "golden"),
    [
        (RouteQuery("llama3.1:70b"), RESIDENT),
        (RouteQuery("qwen3:8b"), COLD),
        (RouteQuery("qwen3:8b", require_loaded=True, min_free_vram_mib=4096), REFUSED),
    ],
)
def test_lines_explain_every_machine(query: RouteQuery, golden: str) -> None:
    assert lines_of(decide_route(sample_fleet(), query, NOW)) == golden


def test_an_unknown_model_and_an_unreachable_fleet() -> None:
    assert (
        lines_of(ask(make_snapshot(installed=[make_installed("llama3.1:8b")]), model="lama3.1:8b")) == UNKNOWN
    )
    assert lines_of(ask(make_offline(), model="llama3.1:8b")) == UNREACHABLE


@pytest.mark.parametrize("long", [60, 85, 140])
def test_free_stands_in_one_column_however_long_a_reason_is(long: int) -> None:
    decision = decide_route(sample_fleet(), RouteQuery("qwen3:8b"), NOW)
    first = decision.candidates[0]
    candidates = (replace(first, why=f"resident, as {'x' * long}"), replace(first, machine="b"))
    lines = route_lines(replace(decision, candidates=candidates))[1 : len(candidates) + 1]
    assert len({line.index("free ") for line in lines}) == 1


def test_lines_can_be_cut() -> None:
    assert all(
        len(line) <= 60 for line in route_lines(decide_route(sample_fleet(), RouteQuery("qwen3:8b"), NOW), 60)
    )


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("address", "ada.lan:11434"),
        ("host", "ada.lan"),
        ("name", "ada"),
        ("url", "http://ada.lan:11434"),
        ("tsv", "ada\tada.lan\t11434\t0"),
        ("env", "export OLLAMA_HOST=ada.lan:11434"),
    ],
)
def test_formats(form: str, answer: str) -> None:
    assert format_answer(ask(make_snapshot(loaded=[make_copy()])), form) == answer


def test_env_of_another_engine_and_of_an_ipv6_address() -> None:
    engine = make_engine(kind="vllm", port=8000, loaded=[make_copy("org/m", engine="vllm")])
    assert format_answer(ask(make_snapshot(engines=(engine,)), model="org/m"), "env") == (
        "export OPENAI_BASE_URL=http://ada.lan:8000/v1"
    )
    six = make_snapshot(loaded=[make_copy()], machine=make_machine(hostname="2001:db8::7"))
    assert format_answer(ask(six), "address") == "[2001:db8::7]:11434"
    assert format_answer(ask(six), "env") == "export OLLAMA_HOST='[2001:db8::7]:11434'"


def test_nothing_is_printed_when_nothing_was_chosen_but_json() -> None:
    decision = ask(make_offline())
    for form in ANSWER_FORMATS:
        answer = format_answer(decision, form)
        if form == "json":
            assert json.loads(answer)["chosen"] is None
        else:
            assert answer == ""


def test_top_lists_fallbacks() -> None:
    fleet = [make_snapshot(f"n{index}", loaded=[make_copy()]) for index in (10, 9, 2)]
    assert format_answer(ask(*fleet, top=2), "name") == "n2\nn9"
    assert format_answer(ask(*fleet, top=9), "name") == "n2\nn9\nn10"


def test_the_whole_document() -> None:
    decision = ask(make_snapshot(loaded=[make_copy()]), make_offline())
    document = json.loads(json.dumps(route_document(decision, took_ms=3.14159), allow_nan=False))
    chosen = {
        "name": "ada",
        "url": "http://ada.lan:11434",
        "address": "ada.lan:11434",
        "hostname": "ada.lan",
        "port": 11434,
        "engine": "ollama",
        "model": "llama3.1:70b",
        "tier": 0,
        "reason": "resident, 100 % GPU, ctx 32768",
        "resident_ctx": 32768,
        "free_vram_gb": 24.0,
        "free_gpu": 0,
        "need_gb": None,
        "need_basis": None,
        "need_text": None,
        "gpus": [],
        "eta_s": 0.0,
        "eta_basis": "resident",
        "eta_text": None,
        "evicts": [],
        "busy": [],
        "idle_s": None,
        "leases": 0,
    }
    assert document == {
        "schema": 1,
        "model": {
            "asked": "llama3.1:70b",
            "canonical": "llama3.1:70b",
            "digest": "6c6c616d61332e313a3730620000000000000000000000000000000000000000",
        },
        "chosen": {**chosen, "lease": None},
        "candidates": [{"rank": 1, **chosen}],
        "rejected": [
            {
                "name": "pve52",
                "codes": ["offline"],
                "text": "offline: no answer on port 22 (timeout), last heard 240 s ago",
            }
        ],
        "warnings": [],
        "nearest": [],
        "exit_code": 0,
        "age_s": {"ada": 1.0, "pve52": 240.0},
        "generated_at": "2026-11-30T14:03:12Z",
        "took_ms": 3.1,
    }


@pytest.mark.parametrize(
    ("mib", "words"),
    [(1, "1 MiB"), (2253, "2.2 GiB"), (4000, "4000 MiB"), (4096, "4.0 GiB"), (102400, "100.0 GiB")],
)
def test_a_minimum_is_told_as_it_was_asked_for(mib: int, words: str) -> None:
    decision = ask(make_snapshot(installed=[make_installed()], cards=[]), min_free_vram_mib=mib)
    assert (
        route_lines(decision)[-1]
        == f"error: no machine can serve 'llama3.1:70b' with {words} of free VRAM now"
    )
