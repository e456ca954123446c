"""Readings: what one source of a machine answered, parsed. Units stand in the names."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.ollama_settings import OllamaSettings
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe, Unknown, known_or


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Processor load. Source: /proc/stat (two samples), /proc/loadavg."""

    busy_percent: Maybe[float] = NOT_READ
    """0-100 over all cores, between the last two samples."""
    load: Maybe[tuple[float, float, float]] = NOT_READ
    """Load average over 1, 5 and 15 minutes."""
    uptime_s: Maybe[float] = NOT_READ


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit on memory below the machine's own: that of a container or of a cgroup around the shell."""

    limit_kib: int
    used_kib: int
    """memory.current, page cache included, as the kernel counts against the limit."""
    is_session: bool = False
    """It binds login sessions only (user.slice, the SSH service), not engines that run as services."""


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """What MemAvailable does not say. Sources: arcstats, /proc/pressure, /proc/swaps, memory.stat."""

    arc_kib: Maybe[int] = NOT_READ
    """ZFS cache; the kernel counts it as used."""
    arc_shrinkable_kib: Maybe[int] = NOT_READ
    """How far it can shrink: size - c_min."""
    limit_cache_kib: Maybe[int] = NOT_READ
    """Page cache that counts against the limit and can go: inactive_file."""
    stalled_some_percent: Maybe[float] = NOT_READ
    """Share of the last 10 s in which some task waited for memory."""
    stalled_full_percent: Maybe[float] = NOT_READ
    """Share in which all tasks did."""
    zram_kib: Maybe[int] = NOT_READ
    """Swap that lies, compressed, in main memory."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Main memory. Source: /proc/meminfo; used = total - available."""

    total_kib: Maybe[int] = NOT_READ
    available_kib: Maybe[int] = NOT_READ
    """MemAvailable as reported."""
    swap_total_kib: Maybe[int] = NOT_READ
    swap_free_kib: Maybe[int] = NOT_READ
    is_available_low: bool = False
    """MemAvailable is MemFree, as lxcfs makes it: more may be available."""
    limits: tuple[MemoryLimit, ...] = ()
    """Those below the total, innermost first; mostly none."""
    details: MemoryDetails | None = None
    """Read less often than the rest."""

    @property
    def used_kib(self) -> Maybe[int]:
        """Total minus available, never below 0."""
        if isinstance(self.total_kib, Unknown):
            return self.total_kib
        if isinstance(self.available_kib, Unknown):
            return self.available_kib
        return max(0, self.total_kib - self.available_kib)

    @property
    def limit(self) -> MemoryLimit | None:
        """The limit with the least room that binds engines too; None where only the machine's size does."""
        if not self.limits:
            return None
        binding = [limit for limit in self.limits if not limit.is_session]
        return min(binding, key=lambda limit: limit.limit_kib - limit.used_kib) if binding else None

    @property
    def usable_kib(self) -> Maybe[int]:
        """What may be used at most: the smallest limit, else the total."""
        binding = [limit.limit_kib for limit in self.limits if not limit.is_session]
        return min(binding) if binding else self.total_kib

    @property
    def free_kib(self) -> Maybe[int]:
        """For placement: min(MemAvailable, limit - what counts against it), never below 0."""
        if not self.limits:
            return self.available_kib
        limit = self.limit
        if limit is None:
            return self.available_kib
        room = max(0, limit.limit_kib - limit.used_kib)
        return room if isinstance(self.available_kib, Unknown) else min(room, self.available_kib)

    @property
    def up_to_kib(self) -> Maybe[int]:
        """`free_kib` if the caches shrink that MemAvailable or the limit count as used; Unknown: no more."""
        free, details = self.free_kib, self.details
        if isinstance(free, Unknown) or details is None:
            return Unknown("no such cache")
        available = self._after_shrinking(self.available_kib, details.arc_shrinkable_kib)
        limit = self.limit
        if limit is not None:
            room = self._after_shrinking(limit.limit_kib - limit.used_kib, details.limit_cache_kib)
            room = room if isinstance(room, Unknown) else min(room, limit.limit_kib)
            available = room if isinstance(available, Unknown) else min(available, known_or(room, available))
        if isinstance(available, Unknown) or isinstance(self.total_kib, Unknown):
            return Unknown("no such cache")
        more = min(available, self.total_kib)
        return more if more > free else Unknown("no such cache")

    @staticmethod
    def _after_shrinking(free_kib: Maybe[int], cache_kib: Maybe[int]) -> Maybe[int]:
        return free_kib if isinstance(free_kib, Unknown) else max(0, free_kib) + known_or(cache_kib, 0)


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
    is_counted: bool = True
    """Enters sums. Bridges, bonds, VLANs and tunnels do not: their bytes pass a card that does."""


@dataclass(frozen=True, slots=True)
class NetReading:
    """Network interfaces of a machine, loopback left out."""

    interfaces: tuple[NetInterface, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One disk of the machine, whether mounted or not. Source: lsblk, /sys/block."""

    name: str
    size_bytes: int
    is_rotational: Maybe[bool] = NOT_READ
    model: Maybe[str] = NOT_READ
    transport: Maybe[str] = NOT_READ
    """`nvme`, `sata`, `usb`, …"""
    mounts: tuple[str, ...] = ()
    """Where it or its parts are mounted."""


@dataclass(frozen=True, slots=True)
class SystemReading:
    """What changes rarely: kernel, distribution, processor, disks, clock."""

    os: Maybe[str] = NOT_READ
    """PRETTY_NAME of /etc/os-release."""
    kernel: Maybe[str] = NOT_READ
    arch: Maybe[str] = NOT_READ
    cpu_model: Maybe[str] = NOT_READ
    cores: Maybe[int] = NOT_READ
    """Logical processors that are online."""
    core_limit: float | None = None
    """Processors a container may use (CPU quota, cpuset); None: all."""
    container: str | None = None
    """`docker`, `lxc`, `podman`, …; None where nothing says so."""
    container_runtime: Maybe[str] = NOT_READ
    """`Docker 27.3.1`."""
    boot_id: Maybe[str] = NOT_READ
    """Changes with each boot."""
    clock_skew_s: Maybe[float] = NOT_READ
    """The machine's clock minus ours, as much as is sure; 0 while it may be right."""
    block_devices: Maybe[tuple[BlockDevice, ...]] = NOT_READ
    ollama: OllamaSettings | None = None
    """Of an Ollama that runs as a service or under our account; None where they cannot be read."""


ModelState = Literal["loaded", "loading", "stopping", "sleeping"]
EngineState = Literal["ok", "busy", "loading", "down", "unauthorized", "not_an_engine"]
EnginePath = Literal["tunnel", "direct", "remote"]


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What some engines say of a model beyond its size; equal ones may be one object."""

    aliases: tuple[str, ...] = ()
    """Other names that a request may use."""
    adapters: tuple[str, ...] = ()
    """LoRA adapters served on it, each by the name that a request uses."""
    max_context: Maybe[int] = NOT_READ
    """Tokens it was made for; what it is served with is `context` of the copy."""
    capabilities: tuple[str, ...] = ()
    """`completion`, `embedding`, `tools`, `vision`, … in the engine's own words."""

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Aliases and adapters; None where there are none."""
        return (self.aliases, self.adapters) if self.aliases or self.adapters else None


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
    traits: ModelTraits | None = None
    """None where the engine says nothing more."""

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Aliases and adapters, further names that a request may use; None where there are none."""
        return None if self.traits is None else self.traits.names

    @property
    def gpu_percent(self) -> Maybe[int]:
        """Share on the GPU; rounding as Ollama's own CLI: 100 - round(CPU share)."""
        if type(self.size_bytes) is Unknown:
            return self.size_bytes
        if type(self.vram_bytes) is Unknown:
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
    traits: ModelTraits | None = None
    """None where the engine says nothing more."""

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Aliases and adapters, further names that a request may use; None where there are none."""
        return None if self.traits is None else self.traits.names


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """How an engine is set up and what it refuses; the same object while nothing of it changes."""

    needs_key: bool = False
    """It asked for an API key."""
    is_router: bool = False
    """One address in front of several servers, each with a model of its own."""
    can_sleep: Maybe[bool] = NOT_READ
    """It may give its memory back when idle, and says whether it does."""
    slots: Maybe[int] = NOT_READ
    """Requests it works on at once, at most."""
    max_loaded: Maybe[int] = NOT_READ
    """Copies it keeps, at most."""
    cache_tokens: Maybe[int] = NOT_READ
    """Tokens that its KV cache holds, over all requests."""
    counts_load: bool = False
    """Its count of requests is kept (vLLM: `--enable-server-load-tracking`), so that 0 means none."""
    refused: tuple[str, ...] = ()
    """Paths it said it has not: not asked again until it starts anew."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How much an engine works, beyond requests in work and queued."""

    in_flight: Maybe[int] = NOT_READ
    """Requests accepted and not yet answered."""
    prompt_tokens: Maybe[int] = NOT_READ
    """Counted since its start."""
    generated_tokens: Maybe[int] = NOT_READ
    """Counted since its start."""
    prompt_tokens_s: Maybe[float] = NOT_READ
    """As the engine averages them, each kind in its own way."""
    generated_tokens_s: Maybe[float] = NOT_READ


@dataclass(frozen=True, slots=True)
class CopyUse:
    """When a copy was last seen to be used; kept while nothing newer is seen."""

    name: str
    """Of the copy, as the engine lists it."""
    used_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """The cards that processes prove a copy to lie on."""

    port: int
    """Of its engine."""
    name: str
    """Of the copy, as the engine lists it."""
    cards: tuple[int, ...]
    """Indices, ascending."""


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
    traits: EngineTraits | None = None
    """None where the engine says nothing of it."""
    load: EngineLoad | None = None
    """None where the engine counts nothing more."""
    uses: tuple[CopyUse, ...] = ()
    """Of the copies whose last use is known; the same object while nothing of it changes."""
    stalled_since: float | None = None
    """Epoch seconds from which on requests are queued and none is in work; None: that is not so."""

    @property
    def is_answering(self) -> bool:
        """It takes questions of its kind, though it may be busy or still load its model."""
        return self.state in ("ok", "busy", "loading")
