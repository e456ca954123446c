"""GPU readings: cards, their faults and their processes, as the vendor's tool reports them."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass, replace
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


GpuVendor = Literal["nvidia", "amd"]


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
    index: int | None = None
    """The card's number, where an earlier answer told which card has that bus id."""


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG instance of a card."""

    profile: str
    """`3g.40gb`; `GI 1` where only the instance's number is known."""
    uuid: Maybe[str]
    total_mib: Maybe[int]
    used_mib: Maybe[int]
    free_mib: Maybe[int]


@dataclass(frozen=True, slots=True)
class GpuCard:
    """One GPU as its vendor's tool reports it."""

    index: int
    """The number that the tool prints; AMD cards beside NVIDIA ones are numbered behind them."""
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
    is_mig: bool = False
    """MIG is on: models go on the instances, never on the card; without `mig` they are not known."""
    vendor: GpuVendor = "nvidia"
    busy_samples: int = 0
    """Samples in a row, this one the last, with a utilisation of BUSY_PERCENT or more; counted up to
    BUSY_SAMPLES_KEPT."""


BUSY_PERCENT = 20
"""Desktop and monitoring leave a card at a few percent; a token stream takes most of it."""
BUSY_SAMPLES_KEPT = 15
"""Half a minute at the usual interval."""

ThrottleReason = Literal["thermal", "power brake", "hardware slowdown", "power cap", "sync boost"]


@dataclass(frozen=True, slots=True)
class CardCondition:
    """What changes rarely on a card and is asked about once a minute."""

    index: int
    uuid: Maybe[str] = NOT_READ
    bus_id: Maybe[str] = NOT_READ
    has_persistence: Maybe[bool] = NOT_READ
    pcie_width: Maybe[int] = NOT_READ
    """Lanes in use; cards at rest may use fewer."""
    pcie_width_max: Maybe[int] = NOT_READ
    pcie_generation: Maybe[int] = NOT_READ
    pcie_generation_max: Maybe[int] = NOT_READ
    is_at_work: bool = False
    """Busy, or in pstate P0, when the link was looked at."""
    throttle: Maybe[tuple[ThrottleReason, ...]] = NOT_READ
    """Why the clocks are held down, most severe first; empty: they are not."""
    ecc_uncorrected: Maybe[int] = NOT_READ
    """Since the last reset or boot."""
    ecc_corrected: Maybe[int] = NOT_READ
    is_retirement_pending: Maybe[bool] = NOT_READ
    """Bad pages of memory are retired at the next reset."""
    addressing_mode: Maybe[str] = NOT_READ
    compute_cap: Maybe[str] = NOT_READ


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One `NVRM: Xid` line of the kernel log: an error that the driver reports."""

    code: int
    bus_id: Maybe[str]
    """`0000:3B:00`, as printed."""
    after_boot_s: float
    text: str
    """What the line says behind the code."""
    at: Maybe[float] = NOT_READ
    """Epoch seconds by the operator's clock."""


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """The slow part of the GPU source: the same object until something in it changes."""

    cards: tuple[CardCondition, ...] = ()
    xids: Maybe[tuple[XidEvent, ...]] = NOT_READ
    """The last ones since boot, oldest first; Unknown where the kernel log may not be read."""
    cuda: Maybe[str] = NOT_READ
    """The newest CUDA version that the driver supports."""
    call_s: Maybe[float] = NOT_READ
    """How long the last call of nvidia-smi took on the machine."""


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
    is_stale: bool = False
    """The cards are those of an earlier answer: the last one had none."""
    condition: GpuCondition | None = None
    notes: tuple[str, ...] = ()
    """What the operator should know and what is no fault, in whole sentences."""
    amd_problem: GpuProblem | None = None
    """Why AMD's cards are missing or old, on a machine that has another vendor's as well."""


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


def count_busy(
    cards: tuple[GpuCard, ...], before: tuple[GpuCard, ...], *, is_sample: bool = True
) -> tuple[GpuCard, ...]:
    """The cards with `busy_samples` counted on from those of the sample before.

    `is_sample`: False where the utilisation is still that of before.
    """
    counts = {card.index: card.busy_samples for card in before if card.busy_samples}
    found: list[GpuCard] | None = None
    for at, card in enumerate(cards):
        used = card.utilisation_percent
        is_busy = not isinstance(used, Unknown) and used >= BUSY_PERCENT
        count = min(counts.get(card.index, 0) + is_sample, BUSY_SAMPLES_KEPT) if is_busy else 0
        if count != card.busy_samples:
            found = list(cards) if found is None else found
            found[at] = replace(card, busy_samples=count)
    return cards if found is None else tuple(found)


def condition_of(reading: GpuReading, card: GpuCard) -> CardCondition | None:
    """The condition of that card, by UUID; by number where the card has none. Another vendor's has none."""
    if reading.condition is None:
        return None
    for item in reading.condition.cards:
        if item.uuid == card.uuid and (not isinstance(card.uuid, Unknown) or item.index == card.index):
            return item
    return None


def cards_of_uuids(cards: tuple[GpuCard, ...]) -> dict[str, int]:
    """Index of the card for each UUID: its own and those of its MIG instances."""
    found: dict[str, int] = {}
    for card in cards:
        if not isinstance(card.uuid, Unknown):
            found[card.uuid] = card.index
        for part in card.mig:
            if not isinstance(part.uuid, Unknown):
                found[part.uuid] = card.index
    return found


def is_on_card(process: GpuProcess, card: GpuCard) -> bool:
    """True when the process names the card or one of its MIG instances; a card without UUID has none.

    Drivers before 470 name an instance `MIG-<uuid of the card>/<instance>/<compute instance>`.
    """
    uuid = process.gpu_uuid
    if isinstance(uuid, Unknown):
        return False
    if uuid == card.uuid:
        return True
    if not uuid.startswith("MIG-") or not (card.mig or card.is_mig):
        return False
    return any(part.uuid == uuid for part in card.mig) or uuid[4:].partition("/")[0] == card.uuid
