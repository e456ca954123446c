"""Readings: what one source of a machine answered, parsed. Units stand in the names."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe, Unknown


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Processor load. Source: /proc/stat (two samples), /proc/loadavg."""

    busy_percent: Maybe[float] = NOT_READ
    """0-100 over all cores, between the last two samples."""
    load: Maybe[tuple[float, float, float]] = NOT_READ
    """Load average over 1, 5 and 15 minutes."""
    uptime_s: Maybe[float] = NOT_READ


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Main memory. Source: /proc/meminfo; used = total - available."""

    total_kib: Maybe[int] = NOT_READ
    available_kib: Maybe[int] = NOT_READ
    swap_total_kib: Maybe[int] = NOT_READ
    swap_free_kib: Maybe[int] = NOT_READ

    @property
    def used_kib(self) -> Maybe[int]:
        """Total minus available, never below 0."""
        if isinstance(self.total_kib, Unknown):
            return self.total_kib
        if isinstance(self.available_kib, Unknown):
            return self.available_kib
        return max(0, self.total_kib - self.available_kib)


@dataclass(frozen=True, slots=True)
class DiskUse:
    """One mounted local file system. Source: df."""

    mount: str
    device: str
    total_kib: int
    used_kib: int
    free_kib: int
    """What an ordinary user may still write."""


@dataclass(frozen=True, slots=True)
class DisksReading:
    """Local file systems of a machine."""

    disks: tuple[DiskUse, ...] = ()


@dataclass(frozen=True, slots=True)
class NetInterface:
    """Rates of one network interface between the last two samples. Source: /proc/net/dev."""

    name: str
    rx_bytes_s: Maybe[float] = NOT_READ
    tx_bytes_s: Maybe[float] = NOT_READ


@dataclass(frozen=True, slots=True)
class NetReading:
    """Network interfaces of a machine, loopback left out."""

    interfaces: tuple[NetInterface, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemReading:
    """What changes rarely: kernel, distribution, processor."""

    os: Maybe[str] = NOT_READ
    """PRETTY_NAME of /etc/os-release."""
    kernel: Maybe[str] = NOT_READ
    arch: Maybe[str] = NOT_READ
    cpu_model: Maybe[str] = NOT_READ
    cores: Maybe[int] = NOT_READ
    """Logical processors."""


ModelState = Literal["loaded", "loading", "stopping", "sleeping"]
EngineState = Literal["ok", "busy", "down", "unauthorized", "not_an_engine"]
EnginePath = Literal["tunnel", "direct", "remote"]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """One copy: a model resident on one machine. Source: the engine's own list (`/api/ps`)."""

    name: str
    engine: EngineKind
    digest: Maybe[str] = NOT_READ
    size_bytes: Maybe[int] = NOT_READ
    """Everything it takes, VRAM and RAM."""
    vram_bytes: Maybe[int] = NOT_READ
    context: Maybe[int] = NOT_READ
    """Tokens."""
    expires_at: Maybe[float] = NOT_READ
    """Seconds since the epoch, by the operator's clock; meaningless when pinned."""
    is_pinned: bool = False
    """keep_alive -1: never expires (Ollama then reports a year of 2200 or later)."""
    state: ModelState = "loaded"
    parameter_size: Maybe[str] = NOT_READ
    quantization: Maybe[str] = NOT_READ

    @property
    def gpu_percent(self) -> Maybe[int]:
        """Share on the GPU; rounding as Ollama's own CLI: 100 - round(CPU share)."""
        if isinstance(self.size_bytes, Unknown):
            return self.size_bytes
        if isinstance(self.vram_bytes, Unknown):
            return self.vram_bytes
        if self.size_bytes <= 0:
            return Unknown("size is 0")
        cpu_share = max(0, self.size_bytes - self.vram_bytes) / self.size_bytes
        return 100 - round(cpu_share * 100)


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model on the machine's disk. Source: `/api/tags`."""

    name: str
    engine: EngineKind
    digest: Maybe[str] = NOT_READ
    size_bytes: Maybe[int] = NOT_READ
    remote_host: str | None = None
    """Set for cloud entries: they run elsewhere and are never local."""
    family: Maybe[str] = NOT_READ
    parameter_size: Maybe[str] = NOT_READ
    quantization: Maybe[str] = NOT_READ


@dataclass(frozen=True, slots=True)
class EngineReading:
    """What one engine of a machine said."""

    kind: EngineKind
    port: int
    state: EngineState
    version: Maybe[str] = NOT_READ
    loaded: Maybe[tuple[LoadedModel, ...]] = NOT_READ
    """Copies resident now; Unknown is not "none"."""
    installed: Maybe[tuple[InstalledModel, ...]] = NOT_READ
    running: Maybe[int] = NOT_READ
    """Requests in work."""
    waiting: Maybe[int] = NOT_READ
    """Requests queued."""
    kv_percent: Maybe[float] = NOT_READ
    is_sleeping: Maybe[bool] = NOT_READ
    error: str | None = None
    """The operator's words; None when the state is ok."""
    path: EnginePath = "tunnel"
    """How it was asked: through SSH, straight from here, by the machine's own curl or wget."""
