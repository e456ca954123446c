"""What the Ollama stand-in says, as values for JSON: field names, order and dates as Ollama prints them.

Shapes from captured answers of Ollama 0.32/0.33 (tests/fixtures/ollama) and its API description.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.models import (
    CATALOG,
    FILE_TYPE,
    ModelSpec,
    file_bytes,
    full_name,
    parameter_count,
    tensors,
)
from fleettui.demo.scheduler import Runner

PINNED_S = (2**63 - 1) / 1e9
"""keep_alive -1 is the longest duration Go has: 292 years."""
BLOBS = "/usr/share/ollama/.ollama/models/blobs/sha256-"
TOKENIZERS = {"llama": "llama-bpe", "gptoss": "gpt-4o", "gemma3": "default"}

WallAt = Callable[[float], float]
"""Epoch seconds of a simulated moment."""


def go_time(epoch_s: float, utc_offset_h: int, salt: int = 0) -> str:
    """RFC 3339 with nine fraction digits and the local offset; trailing zeros are cut as Go does.

    Floats hold microseconds; `salt` gives the last three digits.
    """
    micros = math.floor(epoch_s * 1e6)
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f"{fraction:06d}{salt % 1000:03d}".rstrip("0")
    shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds + utc_offset_h * 3600))
    sign = "-" if utc_offset_h < 0 else "+"
    zone = f"{sign}{abs(utc_offset_h):02d}:00" if utc_offset_h else "Z"
    return f"{shown}.{digits}{zone}" if digits else f"{shown}{zone}"


def details(model: ModelSpec) -> dict[str, Any]:
    """The `details` object of ps, tags and show."""
    if model.remote_host:
        return {
            "parent_model": "",
            "format": "",
            "family": "",
            "families": None,
            "parameter_size": "",
            "quantization_level": "",
        }
    return {
        "parent_model": "",
        "format": "gguf",
        "family": model.architecture,
        "families": [model.architecture],
        "parameter_size": model.parameter_size,
        "quantization_level": model.quantization,
    }


def loaded_models(machine: SimulatedMachine, wall_at: WallAt) -> dict[str, Any]:
    """`GET /api/ps`: the longest-lived copy first."""
    rows = [(_expiry(runner, machine, wall_at), runner) for runner in machine.scheduler.runners.values()]
    rows.sort(key=lambda row: -int(row[0]))
    return {
        "models": [
            {
                "name": runner.model.name,
                "model": runner.model.name,
                "size": runner.placement.size_bytes,
                "digest": runner.model.digest,
                "details": details(runner.model),
                "expires_at": go_time(expiry, machine.plan.utc_offset_h, runner.pid),
                "size_vram": runner.placement.vram_bytes,
                "context_length": runner.context,
            }
            for expiry, runner in rows
        ]
    }


def _expiry(runner: Runner, machine: SimulatedMachine, wall_at: WallAt) -> float:
    """Epoch seconds; while it loads, Ollama counts the keep_alive from now."""
    finished = machine.now if runner.last_finish is None else runner.last_finish
    if math.isinf(runner.keep_alive_s):
        return wall_at(finished) + PINNED_S
    return wall_at(finished + runner.keep_alive_s)


def installed_models(machine: SimulatedMachine) -> dict[str, Any]:
    """`GET /api/tags`: newest first."""
    return {
        "models": [_tag(CATALOG[name], machine, place) for place, name in enumerate(machine.plan.installed)]
    }


def _modified_at(machine: SimulatedMachine, place: int) -> str:
    """Some day before the fleet was built; no clock in it, so that it never moves."""
    return go_time(1_790_000_000.123 - place * 777_600.5, machine.plan.utc_offset_h, 451 + 17 * place)


def _tag(model: ModelSpec, machine: SimulatedMachine, place: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": model.name, "model": model.name}
    if model.remote_host:
        entry |= {"remote_model": model.name.removesuffix(":cloud"), "remote_host": model.remote_host}
    facts = details(model)
    if not model.remote_host:
        facts |= {"context_length": model.context_length, "embedding_length": model.embedding}
    return entry | {
        "modified_at": _modified_at(machine, place),
        "size": file_bytes(model),
        "digest": model.digest,
        "details": facts,
        "capabilities": list(model.capabilities),
    }


def model_document(model: ModelSpec, machine: SimulatedMachine, is_verbose: bool) -> dict[str, Any]:
    """`POST /api/show`: arrays are null unless it is verbose."""
    modified_at = _modified_at(machine, machine.plan.installed.index(model.name))
    if model.remote_host:
        return {
            "details": details(model),
            "model_info": None,
            "remote_model": model.name.removesuffix(":cloud"),
            "remote_host": model.remote_host,
            "capabilities": list(model.capabilities),
            "modified_at": modified_at,
        }
    return {
        "license": "Terms of use of the simulated model\n",
        "modelfile": f'# Modelfile generated by "ollama show"\n\nFROM {BLOBS}{model.blob_digest}\n'
        "TEMPLATE {{ .Prompt }}\n",
        "template": "{{ .Prompt }}",
        "details": details(model),
        "model_info": model_info(model, is_verbose),
        "tensors": [
            {"name": item.name, "type": item.type, "shape": list(item.shape)} for item in tensors(model)
        ],
        "capabilities": list(model.capabilities),
        "modified_at": modified_at,
    }


def model_info(model: ModelSpec, is_verbose: bool) -> dict[str, Any]:
    """GGUF metadata, keys sorted as Go prints a map."""
    tokens = [f"<{number}>" for number in range(model.vocabulary)] if is_verbose else None
    info: dict[str, Any] = {
        "general.architecture": model.architecture,
        "general.file_type": FILE_TYPE[model.quantization],
        "general.parameter_count": parameter_count(model),
        "general.quantization_version": 2,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.merges": [] if is_verbose else None,
        "tokenizer.ggml.model": "bert" if model.is_encoder else "gpt2",
        "tokenizer.ggml.pre": TOKENIZERS.get(model.architecture, "qwen2"),
        "tokenizer.ggml.token_type": [1] * model.vocabulary if is_verbose else None,
        "tokenizer.ggml.tokens": tokens,
    }
    own: dict[str, Any] = {
        "attention.head_count": model.heads,
        "block_count": model.layers,
        "context_length": model.context_length,
        "embedding_length": model.embedding,
        "feed_forward_length": model.feed_forward,
        "vocab_size": model.vocabulary,
    }
    if model.is_encoder:
        own |= {"attention.causal": False, "attention.layer_norm_epsilon": 1e-12, "pooling_type": 1}
    else:
        own |= {
            "attention.head_count_kv": model.kv_heads,
            "attention.key_length": model.key_length,
            "attention.layer_norm_rms_epsilon": 1e-05,
            "attention.value_length": model.key_length,
            "rope.dimension_count": model.key_length,
            "rope.freq_base": 500000,
        }
    if model.window:
        own["attention.sliding_window"] = model.window
    if model.experts:
        own |= {
            "expert_count": model.experts,
            "expert_feed_forward_length": model.feed_forward,
            "expert_used_count": model.experts_used,
        }
    info |= {f"{model.architecture}.{key}": value for key, value in own.items()}
    return dict(sorted(info.items()))


def find_model(machine: SimulatedMachine, name: str) -> ModelSpec | None:
    """The installed model of that name, tag completed, any case."""
    wanted = full_name(name)
    return CATALOG[wanted] if wanted in machine.plan.installed else None
