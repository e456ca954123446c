"""Engines by their names."""

from __future__ import annotations

ENGINE_TITLES = {
    "ollama": "Ollama",
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "llamaswap": "llama-swap",
    "lmstudio": "LM Studio",
    "sglang": "SGLang",
}
