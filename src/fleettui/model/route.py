"""A routing question and its answer. Field `tier` counts 0-7 as docs/routing.md lists them."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe

TYPE_CHECKING = False

FreeScope = Literal["gpu", "host"]

RejectCode = Literal[
    "not_approved",
    "key_changed",
    "maintenance",
    "draining",
    "drained",
    "offline",
    "timeout",
    "stale",
    "engine_down",
    "not_reachable",
    "not_installed",
    "remote_model",
    "not_loaded",
    "free_vram",
    "ctx",
    "no_fit",
    "gpu_fault",
    "gpu_unknown",
    "busy",
    "excluded",
    "selector",
    "cc",  # of a drain: its cards are too old for the model, by the catalog
]

WarningCode = Literal["digest_drift", "cold", "no_machines", "not_known", "loopback"]

EXIT_ROUTED = 0
EXIT_NONE_ELIGIBLE = 1
EXIT_USAGE = 2
EXIT_UNKNOWN_MODEL = 3
EXIT_NO_DATA = 4

TIER_RESIDENT, TIER_BUSY, TIER_PARTLY, TIER_RELOAD = 0, 1, 2, 3
TIER_FITS, TIER_EVICTS, TIER_OFFLOAD, TIER_PULL = 4, 5, 6, 7


@dataclass(frozen=True, slots=True)
class RouteQuery:
    """What a caller asks of the fleet."""

    model: str
    min_free_vram_mib: int = 0
    """Inclusive; 0 asks for nothing. Headroom on top of the model, resident or not."""
    free_scope: FreeScope = "gpu"
    """`gpu`: the largest free value of one card; `host`: the sum over the usable cards."""
    context: int | None = None
    """Tokens the caller will send as `num_ctx`; None: any resident context will do."""
    require_loaded: bool = False
    avoid_busy: bool = False
    tags: tuple[str, ...] = ()
    """All of them must stand in the machine's file."""
    exclude: tuple[str, ...] = ()
    """Names of machines."""
    max_age_s: float | None = None
    """Older data is stale; None: two intervals of the snapshot's writer."""
    deadline_s: float | None = None
    """How long was waited for an answer; only named in the text of `timeout`."""
    top: int = 1
    """How many candidates the answer lists."""
    allow_pull: bool = False
    """Machines without the model count too: tier 7."""
    sticky: str | None = None
    """Askers with one key come to one machine, as long as it stays in the best tier."""
    takes_lease: bool = True
    """False: `--no-lease`. Together with `require_loaded` it is the strict rule: every resident copy alike,
    leases count for nothing, most free VRAM wins."""

    @property
    def is_strict(self) -> bool:
        """Only free VRAM and the name decide among the machines that have the model loaded."""
        return self.require_loaded and not self.takes_lease


def host_and_port(hostname: str, port: int) -> str:
    """`hostname:port`, the host of an IPv6 literal in brackets."""
    host = f"[{hostname}]" if ":" in hostname and hostname[0] != "[" else hostname
    return f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class ServingEngine:
    """An engine that takes requests, whatever the model."""

    machine: str
    hostname: str
    port: int
    url: str
    """Base URL."""
    engine: EngineKind

    @property
    def address(self) -> str:
        """`hostname:port`."""
        return host_and_port(self.hostname, self.port)


@dataclass(frozen=True, slots=True)
class VramNeed:
    """VRAM that a cold copy will take."""

    mib: int
    basis: str
    """How it was found, in a word or two: `measured`, `tensors and cache`, `file size x 1.2 (assumed)`."""
    text: str = ""
    """The figures it is made of."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """An idle copy that has to go for the asked one."""

    model: str
    idle_s: Maybe[float] = NOT_READ
    """Since its last use."""
    vram_mib: Maybe[int] = NOT_READ


if TYPE_CHECKING:
    from typing import Protocol

    class Why(Protocol):
        """Why a machine has its tier: what the candidate does not tell itself."""

        def words(self, candidate: RouteCandidate) -> str:
            """The reason, in the operator's words."""


EtaBasis = Literal["resident", "measured", "assumed", "not known"]


@dataclass(frozen=True, slots=True)
class RouteCandidate:
    """One machine that may serve the model."""

    machine: str
    hostname: str
    port: int
    url: str
    """Base URL of the engine."""
    engine: EngineKind
    tier: int
    why: Why | str
    """Why this tier; put into words where somebody reads `reason`: most candidates are only ranked."""
    model: str
    """The model's name on that machine."""
    free_mib: Maybe[int] = NOT_READ
    """By the query's scope."""
    free_gpu: int | None = None
    """Index of the card with that much room; None for a sum, a CPU-only machine or unknown."""
    utilisation_percent: Maybe[float] = NOT_READ
    """Mean over the usable cards."""
    digest: Maybe[str] = NOT_READ
    resident_context: Maybe[int] = NOT_READ
    need: VramNeed | None = None
    """Only of a cold copy."""
    age_s: float | None = None
    eta_s: Maybe[float] = NOT_READ
    """Seconds until it takes a request; 0 for a resident copy, Unknown behind a queue nobody can count."""
    eta_basis: EtaBasis = "not known"
    eta_text: str = ""
    """The figures behind it: `1.5 GB/s assumed`."""
    evicts: tuple[Eviction, ...] = ()
    """In the order in which they go."""
    gpus: tuple[int, ...] = ()
    """Cards that a cold copy is expected on; empty where that is not known."""
    busy: tuple[str, ...] = ()
    """Signs that requests are in work there, in words."""
    idle_s: Maybe[float] = NOT_READ
    """Since the resident copy's last use."""
    leases: int = 0
    """Askers sent there whose effect no poll has shown."""
    evict_cost_s: float = 0.0
    """Seconds that others are likely to wait for what is evicted."""
    in_flight: int = 0
    """Requests in work and queued where the engine counts them, else the number of signs of work."""
    is_by_catalog: bool = False
    """Only the catalog says that the model of that name is the asked one."""

    @property
    def address(self) -> str:
        """`hostname:port`."""
        return host_and_port(self.hostname, self.port)

    @property
    def reason(self) -> str:
        """Why this tier, in the operator's words."""
        words = self.why if isinstance(self.why, str) else self.why.words(self)
        return f"{words}, as {self.model}" if self.is_by_catalog else words

    @property
    def is_resident(self) -> bool:
        """True for tiers 0-3: the engine holds a copy already."""
        return self.tier <= 3


@dataclass(frozen=True, slots=True)
class Rejection:
    """One reason why a machine cannot serve the model."""

    code: RejectCode
    text: str


@dataclass(frozen=True, slots=True)
class RejectedMachine:
    """A machine with every reason that speaks against it."""

    machine: str
    rejections: tuple[Rejection, ...]
    age_s: float | None = None

    @property
    def codes(self) -> tuple[RejectCode, ...]:
        return tuple(rejection.code for rejection in self.rejections)

    @property
    def text(self) -> str:
        """All reasons in one line."""
        return "; ".join(rejection.text for rejection in self.rejections)


@dataclass(frozen=True, slots=True)
class RouteWarning:
    """Something worth knowing about a choice."""

    code: WarningCode
    text: str


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """Where the model should be served now, and why nowhere else."""

    query: RouteQuery
    canonical: str
    chosen: RouteCandidate | None
    candidates: tuple[RouteCandidate, ...]
    """Best first; the chosen one is the first."""
    rejected: tuple[RejectedMachine, ...]
    """In natural order of the names."""
    exit_code: int
    taken_at: float
    """Epoch seconds of the snapshot that was asked."""
    decided_at: float
    digest: Maybe[str] = NOT_READ
    """Of the chosen copy."""
    warnings: tuple[RouteWarning, ...] = ()
    nearest: tuple[str, ...] = ()
    """Known names most like an unknown one."""


@dataclass(frozen=True, slots=True)
class ServingList:
    """Every engine that takes requests now, and why the other machines have none."""

    engines: tuple[ServingEngine, ...]
    """In the fleet's order."""
    rejected: tuple[RejectedMachine, ...]
    exit_code: int
    """As of a decision: 0, or why there is none."""
