"""How an Ollama was set up: its environment read, and what it makes of a model to load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_card, make_snapshot
from fleettui.decide.kv_cache import F16, CacheTypes
from fleettui.decide.model_need import ContextUse
from fleettui.decide.ollama_use import ASSUMES_ONE, find_ollama_use
from fleettui.model.gpu import GpuReading
from fleettui.model.model_shape import ModelShape
from fleettui.model.ollama_settings import NOT_SET, OllamaSettings
from fleettui.model.readings import SystemReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.probes.engines.ollama_environment import parse_ollama_settings

WHOLE = b"""OLLAMA_HOST=0.0.0.0:11435
OLLAMA_NUM_PARALLEL=4
OLLAMA_KV_CACHE_TYPE=Q8_0
OLLAMA_CONTEXT_LENGTH=16384
OLLAMA_FLASH_ATTENTION=1
OLLAMA_SCHED_SPREAD=true
OLLAMA_MAX_LOADED_MODELS=2
OLLAMA_KEEP_ALIVE=24h
"""


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", OllamaSettings()),
        (WHOLE, OllamaSettings(11435, 4, "q8_0", 16384, "on", True, 2, "24h")),
        (b'OLLAMA_NUM_PARALLEL="2"\r\nOLLAMA_NUM_PARALLEL=8\n', OllamaSettings(parallel=8)),
        (b"OLLAMA_NUM_PARALLEL=0\n", OllamaSettings()),
        (b"OLLAMA_NUM_PARALLEL=four\n", OllamaSettings()),
        (b"OLLAMA_FLASH_ATTENTION=false\nOLLAMA_SCHED_SPREAD=0\n", OllamaSettings(flash_attention="off")),
        (b"OLLAMA_SCHED_SPREAD=yes\n", OllamaSettings(spreads=True)),
        (b"OLLAMA_KEEP_ALIVE=\x1b[2J-1\n", OllamaSettings(keep_alive="-1")),
        (b"OLLAMA_HOST=[::]:12000\n", OllamaSettings(12000)),
        (b"OLLAMA_API_KEY=secret\nAWS_SECRET=x\nOLLAMA_HOST\n", OllamaSettings()),
    ],
)  # fmt: skip
def test_what_the_environment_says(payload: bytes, expected: OllamaSettings) -> None:
    assert parse_ollama_settings(payload, 0) == expected


def test_no_environment_is_not_the_default_one() -> None:
    assert parse_ollama_settings(b"", 1) is None
    assert parse_ollama_settings(b"OLLAMA_NUM_PARALLEL=1\n" * 4096, 0) is None


@given(st.binary(max_size=300))
def test_any_bytes(payload: bytes) -> None:
    assert parse_ollama_settings(payload, 0) is not None


def machine(settings: OllamaSettings | None, *totals_gib: float, **more: Any) -> MachineSnapshot:
    cards = tuple(make_card(index, total_gib=gib, free_gib=gib) for index, gib in enumerate(totals_gib))
    return replace(make_snapshot(), gpu=GpuReading(cards), system=SystemReading(ollama=settings), **more)


Q8 = CacheTypes("q8_0", "q8_0")
SET = OllamaSettings(11434, 4, "q8_0", 16384)
DEFAULT = "default by VRAM"


@pytest.mark.parametrize(
    ("snapshot", "asked", "use", "basis", "is_known"),
    [
        (machine(None, 16), None, ContextUse(4096), DEFAULT, False),
        (machine(None, 24), None, ContextUse(32768), DEFAULT, False),
        (machine(None, 24, 24), None, ContextUse(262144), DEFAULT, False),
        (machine(None, 24), 8192, ContextUse(8192), "asked for", False),
        (replace(machine(None), gpu=None), None, ContextUse(4096), "assumed", False),
        (machine(SET, 24), None, ContextUse(16384, 4, Q8), "OLLAMA_CONTEXT_LENGTH", True),
        (machine(SET, 24), 8192, ContextUse(8192, 4, Q8), "asked for", True),
        (machine(replace(SET, port=1), 24), None, ContextUse(32768), DEFAULT, False),
        (machine(OllamaSettings(), 24), None, ContextUse(32768), DEFAULT, True),
        (machine(OllamaSettings(cache_type="q8_0", flash_attention="off"), 24), 4096,
         ContextUse(4096, 1, F16, False), "asked for", True),
        (machine(OllamaSettings(cache_type="iq4_nl"), 24), 4096, ContextUse(4096), "asked for", True),
    ],
)  # fmt: skip
def test_how_a_model_would_be_loaded(
    snapshot: MachineSnapshot, asked: int | None, use: ContextUse, basis: str, is_known: bool
) -> None:
    found = find_ollama_use(snapshot, 11434, asked)
    assert (found.use, found.context_basis, found.is_parallel_known) == (use, basis, is_known)
    assert (ASSUMES_ONE in found.notes) is not is_known


def test_the_models_own_context_comes_before_the_servers() -> None:
    shape = ModelShape(own_context=2048)
    found = find_ollama_use(machine(SET, 24), 11434, None, shape)
    assert (found.use.context, found.context_basis) == (2048, "num_ctx of the model")
    assert find_ollama_use(machine(SET, 24), 11434, 8192, shape).use.context == 8192


def test_spread_and_cap_are_told() -> None:
    found = find_ollama_use(machine(replace(SET, spreads=True, max_loaded=2), 24), 11434)
    assert (found.spreads, found.max_loaded) == (True, 2)
    assert find_ollama_use(machine(SET, 24), 11434).max_loaded == NOT_SET
