"""Engines by their names, and what a snapshot says of those that its machine file declares."""

from __future__ import annotations

from fleettui.model.machine import EngineEndpoint
from fleettui.model.snapshot import MachineSnapshot

ENGINE_TITLES = {
    "ollama": "Ollama",
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "llamaswap": "llama-swap",
    "lmstudio": "LM Studio",
    "sglang": "SGLang",
}


def unasked_engines(snapshot: MachineSnapshot) -> list[EngineEndpoint]:
    """Declared engines of kinds that fleettui cannot ask: their source is `unsupported`."""
    found = []
    for endpoint in snapshot.machine.engines:
        exact = snapshot.sources.get(f"{endpoint.kind}:{endpoint.port}")
        status = exact if exact is not None else snapshot.sources.get(endpoint.kind)
        if status is not None and status.state == "unsupported":
            found.append(endpoint)
    return found
