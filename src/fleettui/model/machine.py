"""A machine as its YAML file declares it."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass, field
from fleettui.model.unknown import Maybe, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EngineKind = Literal["ollama", "vllm", "llamacpp", "llamaswap", "lmstudio", "sglang"]

DEFAULT_ENGINE_PORT = 11434
"""Ollama's port; `network.port` of a machine file is the engine's port, never SSH's."""

NOT_DECLARED = Unknown("not declared")


@dataclass(frozen=True, slots=True)
class DeclaredGpu:
    """One entry of `hardware.gpu`."""

    model: str
    vram_gb: Maybe[float]
    """GiB, as written."""


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The `ssh:` key. None means: take it from ~/.ssh/config, else the default."""

    is_local: bool = False
    """`ssh: local`: this machine, asked through a subprocess."""
    host: str | None = None
    """None: `network.hostname`."""
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    """Path of a private key, `~` allowed."""
    jump: str | None = None
    """`[user@]host[:port]`, comma-separated for a chain, as ProxyJump."""
    host_key: str | None = None
    """`SHA256:…` fingerprint that the host key must have."""


@dataclass(frozen=True, slots=True)
class EngineEndpoint:
    """Where an engine is asked."""

    kind: EngineKind
    port: int
    url: str | None = None
    """Base URL when the engine is not on the machine's loopback."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is never kept."""
    start: str | None = None
    """Command that starts it on its machine; only a drain runs it."""
    stop: str | None = None
    """Command that stops it there; only a drain runs it."""


@dataclass(frozen=True, slots=True)
class NvidiaSmi:
    """How the operator wants nvidia-smi called on a machine."""

    path: str | None = None
    """Where it is; None: looked for. Where nothing is at that path it is looked for too."""
    wakes: bool = False
    """Ask although every GPU sleeps: it wakes them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One host of the fleet. Source: `machines/*.yaml`, spec of the file in docs/machines.md."""

    name: str
    role: str
    hostname: str
    """`network.hostname`: the address that `--route` hands out."""
    port: int = DEFAULT_ENGINE_PORT
    """`network.port`: the engine's port."""
    cpu: Maybe[str] = NOT_DECLARED
    ram_gb: Maybe[float] = NOT_DECLARED
    """GiB."""
    gpus: tuple[DeclaredGpu, ...] | None = None
    """`()`: declared CPU-only; None: not declared, so unknown."""
    storage_gb: Maybe[float] = NOT_DECLARED
    """Decimal GB."""
    models: tuple[str, ...] = ()
    """Declared models, as written."""
    tags: tuple[str, ...] = ()
    disabled_gpus: tuple[int, ...] = ()
    """Indices of `gpus[]` entries with `disabled: true`."""
    nvidia_smi: NvidiaSmi = NvidiaSmi()
    ssh: SshSettings = SshSettings()
    engines: tuple[EngineEndpoint, ...] = ()
    """Engines to ask; without `engines:` in the file, Ollama on `port`."""
    document: dict[str, Any] = field(default_factory=dict)
    """The whole file, JSON-ready, order and unknown keys kept. Never mutated."""
    config_file: str = ""
    """Path of the file."""

    @property
    def declares_gpus(self) -> bool:
        """True when the file names at least one GPU."""
        return bool(self.gpus)

    @property
    def is_cpu_only(self) -> bool:
        """True when the file says `gpu: []`."""
        return self.gpus == ()


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing wrong in a file the operator wrote."""

    file: str
    line: int | None
    """1-based; None where the problem is no line of the file (unreadable, missing folder)."""
    key: str | None
    """Dotted path, e.g. `network.hostname`."""
    message: str
    """What is wrong and what to do, one sentence."""
    is_of_catalog: bool = False
    """The file is the catalog's, no machine's."""
