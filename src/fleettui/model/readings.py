"""Readings: what one source of a machine answered, parsed. Units stand in the names."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe, Unknown

GpuProblemCode = Literal[
    "no_tool",  # no nvidia-smi found anywhere
    "cannot_run",  # it is there and the system cannot run it
    "no_devices",
    "version_mismatch",
    "driver_not_running",
    "library_missing",
    "no_permission",
    "nvml_failed",  # any other "Failed to initialize NVML: …"
    "usage_error",  # our query was refused
    "hung",  # an earlier call still runs
    "timed_out",  # the tool's time limit on the machine ended it
    "killed",
    "asleep",  # every card is suspended (laptops); asking would wake them
    "unreadable",  # text that is neither rows nor a known sentence
]


@dataclass(frozen=True, slots=True)
class GpuProblem:
    """Why there are no cards, or not all of them."""

    code: GpuProblemCode
    text: str
    """The operator's words: what it is and what to do."""
    detail: str = ""
    """The tool's own text, cleaned and shortened."""


GpuFaultCode = Literal["lost", "reset", "unknown_error"]


@dataclass(frozen=True, slots=True)
class GpuFault:
    """A card that is lost, needs a reset or cannot be read."""

    bus_id: Maybe[str]
    code: GpuFaultCode
    text: str


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG instance of a card."""

    profile: str
    uuid: Maybe[str]
    total_mib: Maybe[int]
    used_mib: Maybe[int]
    free_mib: Maybe[int]


@dataclass(frozen=True, slots=True)
class GpuCard:
    """One GPU as nvidia-smi reports it."""

    index: int
    uuid: Maybe[str] = NOT_READ
    name: Maybe[str] = NOT_READ
    driver: Maybe[str] = NOT_READ
    total_mib: Maybe[int] = NOT_READ
    used_mib: Maybe[int] = NOT_READ
    free_mib: Maybe[int] = NOT_READ
    """memory.free as printed, never total - used (reserved memory differs)."""
    utilisation_percent: Maybe[int] = NOT_READ
    temperature_c: Maybe[int] = NOT_READ
    power_w: Maybe[float] = NOT_READ
    power_limit_w: Maybe[float] = NOT_READ
    fan_percent: Maybe[int] = NOT_READ
    pstate: Maybe[str] = NOT_READ
    bus_id: Maybe[str] = NOT_READ
    """`00000000:01:00.0`, as printed."""
    is_unified: bool = False
    """GPU and CPU share one memory; figures then come from /proc/meminfo and count once."""
    fault: GpuFault | None = None
    suspect: tuple[str, ...] = ()
    """Field names whose value is implausible, e.g. `power_w` far above the limit."""
    mig: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What the GPU source said."""

    cards: tuple[GpuCard, ...] = ()
    """In index order; numbers come from the index column, never from the position."""
    faults: tuple[GpuFault, ...] = ()
    """Faults of cards that gave no row."""
    warnings: tuple[str, ...] = ()
    problem: GpuProblem | None = None
    unsupported_fields: tuple[str, ...] = ()
    """Query fields this driver refused; they are left out of later queries."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One compute process on a card."""

    gpu_uuid: Maybe[str]
    pid: int
    name: str
    """Path or command as nvidia-smi prints it."""
    used_mib: Maybe[int] = NOT_READ
    user: Maybe[str] = NOT_READ
    command: Maybe[str] = NOT_READ

    @property
    def short_name(self) -> str:
        """Last path part of the name, for Windows paths too."""
        return self.name.replace("\\", "/").rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class ProcessesReading:
    """GPU processes of a machine."""

    processes: tuple[GpuProcess, ...] = ()


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
