"""Engines by their names."""

from __future__ import annotations

from fleettui.model.machine import Machine

ENGINE_TITLES = {
    "ollama": "Ollama",
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "llamaswap": "llama-swap",
    "lmstudio": "LM Studio",
    "sglang": "SGLang",
}


def declares_engines(machine: Machine) -> bool:
    """The file has `engines:`; without, Ollama on `network.port` stands for them."""
    return bool(machine.document.get("engines"))
