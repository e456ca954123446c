"""GPU readings: cards, their faults and their processes, as the vendor's tool reports them."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe

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
