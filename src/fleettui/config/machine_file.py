"""One machine file: bytes -> Machine, or everything that is wrong with it."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from fleettui.config.machine_schema import DEFAULT_PORTS, EnginePart, MachinePart
from fleettui.config.schema_errors import describe_error
from fleettui.config.yaml_builder import MAX_PROBLEMS, dotted
from fleettui.config.yaml_document import YamlDocument, read_yaml
from fleettui.model.machine import (
    DEFAULT_ENGINE_PORT,
    NOT_DECLARED,
    ConfigProblem,
    DeclaredGpu,
    EngineEndpoint,
    Machine,
    NvidiaSmi,
    SshSettings,
)

_EXAMPLES = {
    "name": "name: ada",
    "role": "role: gpu-host",
    "hardware": "hardware: {}",
    "hardware.cpu": "cpu: 16-core x86_64",
    "hardware.ram_gb": "ram_gb: 128",
    "hardware.gpu": "gpu: [{model: RTX 4090, vram_gb: 24}], or gpu: [] for a machine without GPU",
    "hardware.gpu[]": "- {model: RTX 4090, vram_gb: 24}",
    "hardware.gpu[].model": "model: RTX 4090",
    "hardware.gpu[].vram_gb": "vram_gb: 24",
    "storage_gb": "storage_gb: 2000",
    "network": "network: {hostname: ada.lan, port: 11434}",
    "network.hostname": "network: {hostname: ada.lan}",
    "network.port": "port: 11434",
    "models": "models: [llama3.1:8b], or models: [] for none",
    "models[]": '- "llama3.1:8b"',
    "tags": "tags: [gpu, edge]",
    "tags[]": '- "edge"',
    "ssh": "ssh: {user: ops}",
    "ssh.port": "port: 22",
    "engines": "engines: [{kind: vllm, port: 8000}]",
    "engines[]": "- {kind: vllm, port: 8000}",
    "engines[].kind": "kind: vllm",
    "engines[].port": "port: 8000",
}
"""What a right line looks like, shown in the message about a wrong one."""


def read_machine_file(data: bytes, path: str) -> tuple[Machine | None, tuple[ConfigProblem, ...]]:
    """The machine that `data` declares; None as soon as there is one problem. Never raises."""
    document = read_yaml(data)
    problems = [ConfigProblem(path, item.line, item.key, item.message) for item in document.problems]
    if not isinstance(document.value, dict):
        if not problems:
            message = "A machine file is a map of keys; begin with a line such as `name: ada`."
            problems.append(ConfigProblem(path, document.line_of(()), None, message))
        return None, tuple(problems)
    part: MachinePart | None = None
    try:
        part = MachinePart.model_validate(document.value)
    except ValidationError as error:
        problems += [_describe(item, document, path) for item in error.errors(include_url=False)]
    disabled, more = _disabled_gpus(document, path)
    problems += more
    if part is not None:
        problems += _repeated_engines(part, document, path)
    if part is None or problems:
        return None, tuple(sorted(problems, key=lambda problem: problem.line or 0)[: MAX_PROBLEMS + 1])
    return _machine(part, disabled, document.value, path), ()


def _machine(part: MachinePart, disabled: tuple[int, ...], document: dict[str, Any], path: str) -> Machine:
    gpus = part.hardware.gpu
    port = part.network.port or DEFAULT_ENGINE_PORT
    ssh, tool = part.ssh, part.nvidia_smi
    if part.engines is None:
        engines: tuple[EngineEndpoint, ...] = (EngineEndpoint("ollama", port),)
    else:
        engines = tuple(_endpoint(engine, port) for engine in part.engines)
    return Machine(
        name=part.name,
        role=part.role,
        hostname=part.network.hostname,
        port=port,
        cpu=NOT_DECLARED if part.hardware.cpu is None else part.hardware.cpu,
        ram_gb=NOT_DECLARED if part.hardware.ram_gb is None else part.hardware.ram_gb,
        gpus=None if gpus is None else tuple(_gpu(gpu.model, gpu.vram_gb) for gpu in gpus),
        storage_gb=NOT_DECLARED if part.storage_gb is None else part.storage_gb,
        models=tuple(part.models),
        tags=tuple(part.tags or ()),
        disabled_gpus=disabled,
        nvidia_smi=NvidiaSmi() if tool is None else NvidiaSmi(tool.path, bool(tool.wake)),
        ssh=SshSettings() if ssh is None else SshSettings(**dict(ssh)),
        engines=engines,
        document=document,
        config_file=path,
    )


def _gpu(model: str | None, vram_gb: float | None) -> DeclaredGpu:
    return DeclaredGpu(model or "", NOT_DECLARED if vram_gb is None else vram_gb)


def _endpoint(engine: EnginePart, ollama_port: int) -> EngineEndpoint:
    """Port: as written, else the URL's, else Ollama's `network.port`, else the engine's own default."""
    port = engine.port
    if port is None and engine.url is not None:
        from urllib.parse import urlsplit

        parts = urlsplit(engine.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    if port is None:
        port = ollama_port if engine.kind == "ollama" else DEFAULT_PORTS[engine.kind]
    return EngineEndpoint(engine.kind, port, engine.url, engine.api_key_env, engine.start, engine.stop)


def _disabled_gpus(document: YamlDocument, path: str) -> tuple[tuple[int, ...], list[ConfigProblem]]:
    """Indices of `gpus[]` entries with `disabled: true`; `index` of the entry, else its position."""
    entries = document.value.get("gpus")
    indices: list[int] = []
    problems: list[ConfigProblem] = []
    for position, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict) or entry.get("disabled") in (None, False):
            continue
        if entry["disabled"] is True:
            index = entry.get("index")
            is_index = isinstance(index, int) and not isinstance(index, bool) and index >= 0
            indices.append(index if is_index else position)  # type: ignore[arg-type]
            continue
        where = ("gpus", position, "disabled")
        message = (
            f"{dotted(where)} must be true or false; write `disabled: true` to keep this GPU out of use."
        )
        problems.append(ConfigProblem(path, document.line_of(where), dotted(where), message))
    return tuple(sorted(set(indices))), problems


def _repeated_engines(part: MachinePart, document: YamlDocument, path: str) -> list[ConfigProblem]:
    port = part.network.port or DEFAULT_ENGINE_PORT
    seen: dict[tuple[str | None, int], int] = {}
    problems: list[ConfigProblem] = []
    for position, engine in enumerate(part.engines or ()):
        endpoint = _endpoint(engine, port)
        first = seen.setdefault((endpoint.url, endpoint.port), position)
        if first != position:
            where = ("engines", position)
            message = (
                f"{dotted(where)} asks the same port {endpoint.port} as engines[{first}]; "
                "give it its own port or remove it."
            )
            problems.append(ConfigProblem(path, document.line_of(where), dotted(where), message))
    return problems


def _describe(error: Any, document: YamlDocument, path: str) -> ConfigProblem:
    """One error of pydantic in the operator's words."""
    where: tuple[str | int, ...] = error["loc"]
    if where == ("network",) and error["type"] == "missing":
        where = ("network", "hostname")
    pattern = re.sub(r"\[\d+\]", "[]", dotted(where))
    return describe_error(error, where, _EXAMPLES.get(pattern), document, path)
