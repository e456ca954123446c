"""Snapshots: all readings of a machine or of the fleet at one moment. Immutable; keep one for ever."""

from __future__ import annotations

from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.literal import Literal
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.readings import (
    CopyPlace,
    CpuReading,
    DisksReading,
    EngineReading,
    InstalledModel,
    LoadedModel,
    MemoryReading,
    NetReading,
    SystemReading,
)
from fleettui.model.record import dataclass, field
from fleettui.model.sockets import FoundEngine, SocketsReading
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

Health = Literal["healthy", "degraded", "unhealthy", "offline", "unknown"]
Trust = Literal["approved", "pending", "rejected", "key_changed"]
LinkState = Literal["never", "connecting", "up", "failed"]
LinkStage = Literal[
    "settings",  # ssh_config or identity unusable
    "resolve",
    "connect",
    "greeting",  # the port answers, but not as SSH
    "key exchange",
    "host key",
    "authentication",
    "session",  # logged in, but no shell that answers
    "silent",  # was up, no byte any more
    "lost",  # closed or reset
]
SourceState = Literal["never", "ok", "late", "error", "unsupported"]
"""never: not asked yet; late: no answer beyond its interval; unsupported: this machine has none."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """State of one source of a machine: `gpu`, `processes`, `cpu`, `memory`, `disks`, `net`, `system`,
    `ollama` (an engine's kind; `kind:port` for a second one of a kind)."""

    state: SourceState = "never"
    read_at: float | None = None
    """Epoch seconds of the last good reading; it is what the snapshot still shows."""
    since: float | None = None
    """Epoch seconds at which the present state began."""
    error: str | None = None
    """The operator's words."""

    def age_s(self, now: float) -> float | None:
        """Seconds since the last good reading."""
        return None if self.read_at is None else max(0.0, now - self.read_at)


@dataclass(frozen=True, slots=True)
class HostKeyOffer:
    """The host key a machine offered and what was expected."""

    key_type: str
    """`ED25519`, `RSA`, …"""
    fingerprint: str
    """`SHA256:…`, whole."""
    code: str
    """First 8 base32 characters of the fingerprint hash, `XXXX-XXXX`."""
    expected: tuple[str, ...] = ()
    """Fingerprints we knew; empty on first contact."""
    expires_at: float | None = None
    """Epoch seconds after which nothing is asked until the operator asks again; None: it does not expire."""

    def has_expired(self, now: float) -> bool:
        """Nobody decided about it in time."""
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """The connection to a machine."""

    state: LinkState = "never"
    stage: LinkStage | None = None
    """Where it failed."""
    error: str | None = None
    """What failed, where, why, in one line."""
    since: float | None = None
    next_try_at: float | None = None
    """Epoch seconds; None while up, or when nothing is tried until the operator changes something."""
    address: str | None = None
    """`192.0.2.10:22`, what is or was talked to."""
    offer: HostKeyOffer | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceFlag:
    """The operator took the machine out of routing and planning."""

    reason: str | None
    by: str
    since: float
    until: float | None = None
    """When it should be over. It ends nothing: only the operator knows whether the work is done."""

    def is_overdue(self, now: float) -> bool:
        """Past its time, and still on."""
        return self.until is not None and now >= self.until


DrainState = Literal["planned", "running", "drained", "blocked", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class DrainFlag:
    """The operator wants the machine empty."""

    state: DrainState
    """As its worker wrote it, and as the machine is: empty is drained, refilled is blocked."""
    reason: str
    by: str
    since: float
    until: float | None = None
    """When the work should be over. It ends nothing."""
    text: str = ""
    """The condition that is missing, or what failed."""
    id: str = ""
    """Of this drain of the machine."""
    revision: int = 0
    """Grows with every change of the stored flag."""
    changed_by: str = ""
    """`user@host`."""
    changed_at: float = 0.0

    @property
    def is_drained(self) -> bool:
        """Nothing of ours is loaded there: safe to reboot."""
        return self.state == "drained"

    def is_overdue(self, now: float) -> bool:
        """Past its time, and still on."""
        return self.until is not None and now >= self.until


Severity = Literal["offline", "unhealthy", "degraded", "note"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a health, in the operator's words with what to do."""

    severity: Severity
    code: str
    """Stable, for tests and scripts: `ssh_connect`, `gpu_version_mismatch`, `disk_full`, …"""
    text: str


@dataclass(frozen=True, slots=True)
class MachineSnapshot:
    """Everything known of one machine at one moment. A reading is None until its source answered once."""

    machine: Machine
    trust: Trust = "approved"
    link: LinkStatus = LinkStatus()
    gpu: GpuReading | None = None
    processes: ProcessesReading | None = None
    cpu: CpuReading | None = None
    memory: MemoryReading | None = None
    disks: DisksReading | None = None
    net: NetReading | None = None
    sockets: SocketsReading | None = None
    system: SystemReading | None = None
    engines: tuple[EngineReading, ...] = ()
    """One for each engine asked, in the order of `machine.engines`."""
    places: tuple[CopyPlace, ...] | None = None
    """Of the copies whose cards are proven; the same object while nothing it is made of changes. None: nobody
    looked."""
    found: tuple[FoundEngine, ...] | None = None
    """Engines that the file does not name, by port; None: nobody looked yet."""
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    health: Health = "unknown"
    reasons: tuple[Reason, ...] = ()
    """Most severe first."""
    last_seen: float | None = None
    """Epoch seconds of the last frame of the fact channel."""
    maintenance: MaintenanceFlag | None = None
    drain: DrainFlag | None = None
    seq: int = 0
    """Grows with every change of this machine's snapshot."""

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def loaded(self) -> tuple[LoadedModel, ...]:
        """Copies on all engines that answered."""
        return tuple(
            copy
            for engine in self.engines
            if not isinstance(engine.loaded, Unknown)
            for copy in engine.loaded
        )

    @property
    def installed(self) -> tuple[InstalledModel, ...]:
        """Models on disk of all engines that answered."""
        return tuple(
            model
            for engine in self.engines
            if not isinstance(engine.installed, Unknown)
            for model in engine.installed
        )

    @property
    def is_out_of_service(self) -> bool:
        """In maintenance or drained: that it does not answer is no surprise."""
        return self.maintenance is not None or (self.drain is not None and self.drain.state == "drained")

    def age_s(self, now: float) -> float | None:
        """Seconds since the machine was last heard."""
        return None if self.last_seen is None else max(0.0, now - self.last_seen)


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The fleet at one moment."""

    seq: int
    taken_at: float
    """Epoch seconds."""
    interval_s: float
    machines: tuple[MachineSnapshot, ...] = ()
    """In natural order of the names."""
    problems: tuple[ConfigProblem, ...] = ()
    """What is wrong in the machine files and the catalog; never hides the good ones."""
    machines_dir: str = ""
    paused_at: float | None = None
    """Epoch seconds since which nobody is asked because the operator paused; None: machines are asked."""
    catalog: Catalog = EMPTY_CATALOG
    """What the operator says of models; the same object while nothing of it changes."""

    def judged_at(self, now: float) -> float:
        """The moment by which ages tell what is stale: a pause makes nothing stale that was not."""
        return now if self.paused_at is None else min(now, self.paused_at)

    def find(self, name: str) -> MachineSnapshot | None:
        """The machine of that exact name."""
        return next((item for item in self.machines if item.machine.name == name), None)
