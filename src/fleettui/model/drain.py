"""Taking a machine out of service without an outage: what a drain would do, does and did."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.names import canonical_name
from fleettui.model.record import dataclass, replace
from fleettui.model.route import RejectedMachine, RouteCandidate
from fleettui.model.snapshot import DrainFlag, DrainState
from fleettui.model.unknown import NOT_READ, Maybe

DrainClass = Literal[
    "covered",  # a peer serves the same weights already: nothing to load
    "move",
    "move_evicts",  # idle copies on the target have to go
    "degraded",  # there only with CPU offload or a smaller context
    "pull",  # the target has no files of it
    "last_copy",  # no target now; another machine has the files: cold there
    "cannot",  # no target, and nowhere else on a disk
    "unmanaged",  # nobody can unload it from here
]

CLASS_WORDS: dict[DrainClass, str] = {
    "covered": "COVERED",
    "move": "MOVE",
    "move_evicts": "MOVE+EVICTS",
    "degraded": "DEGRADED",
    "pull": "PULL",
    "last_copy": "LAST COPY",
    "cannot": "CANNOT",
    "unmanaged": "UNMANAGED",
}
LOADING_CLASSES: tuple[DrainClass, ...] = ("move", "move_evicts", "degraded", "pull")
"""Their copies are loaded on a target first."""
WORKING: tuple[DrainState, ...] = ("planned", "running")
"""States of a drain that somebody has to work on."""
FORCED_CLASSES: tuple[DrainClass, ...] = ("last_copy", "cannot", "unmanaged")
"""Copies that end without a resident one elsewhere: only with the operator's word for each class."""

CopyState = Literal[
    "pending",
    "waiting_target",  # another copy is loaded there, or leaves room first
    "loading",
    "verifying",
    "switched",  # the target serves it; routing sends nobody to the source any more
    "waiting_idle",
    "unloading",
    "gone",
    "covered",  # a peer serves it; it is unloaded next
    "skipped",  # by the operator
    "blocked",
    "failed",
]
END_STATES: tuple[CopyState, ...] = ("gone", "skipped", "blocked", "failed")


def read_forced_class(text: str) -> DrainClass:
    """`last-copy`, `LAST COPY` … Raises ValueError for what cannot be forced."""
    wanted = text.strip().lower().replace("-", " ").replace("_", " ")
    for name in FORCED_CLASSES:
        if CLASS_WORDS[name].lower() == wanted:
            return name
    raise ValueError(f"{text[:80]!r} is none of last-copy, cannot, unmanaged")


CopyEngine = Literal["ollama", "vllm", "llamacpp", "llamaswap", "lmstudio", "sglang", "process"]
"""`process`: a GPU process of no engine that is asked; its `name` tells which, its `port` is 0."""


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """A copy on the machine that is drained, as its engine lists it."""

    machine: str
    engine: CopyEngine
    port: int
    name: str
    digest: Maybe[str] = NOT_READ
    size_bytes: Maybe[int] = NOT_READ
    vram_bytes: Maybe[int] = NOT_READ
    context: Maybe[int] = NOT_READ
    """Tokens."""
    expires_at: Maybe[float] = NOT_READ
    """Epoch seconds; meaningless when pinned."""
    is_pinned: bool = False

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What names it: machine, engine, port, name."""
        return self.machine, self.engine, self.port, self.name


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """What the operator allows; kept with the drain, so that whoever resumes it does the same."""

    allow_pull: bool = False
    accept_degraded: bool = False
    """A copy that lies partly in main memory, or has a smaller context, is kept on its target."""
    keeps_context: bool = False
    """Targets load with the source's context; else with their own default. The next request that names no
    context makes Ollama load it anew."""
    idle_wait_s: float = 60.0
    """How long a copy may be at work before its unload waits no more: a request in work still ends.
    0: until it is idle."""
    deadline_s: float | None = None
    """Since the start; then the drain is blocked, never forced."""
    probes: bool = False
    """One token is generated on the target before it counts."""
    forced: tuple[DrainClass, ...] = ()
    """Classes of FORCED_CLASSES that may end without a resident copy."""
    targets: tuple[str, ...] = ()
    """Only these machines; empty: all."""
    serial: int = 0
    """How many of the machines that were started together are worked on at once; 0: all."""
    skips: tuple[str, ...] = ()
    """Names of models that are left where they are; the drain then ends as blocked."""

    def skips_copy(self, copy: SourceCopy) -> bool:
        """One of the names means it: Ollama's by its rules, all others whole."""
        if copy.name in self.skips:
            return True
        return copy.engine == "ollama" and canonical_name(copy.name) in map(canonical_name, self.skips)


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """One line of a drain: what becomes of a copy, and why."""

    copy: SourceCopy
    drain_class: DrainClass
    text: str = ""
    """What the line says beyond its fields: `also on cleo (same digest)`, what is missing."""
    target: RouteCandidate | None = None
    """Where it is loaded, of `covered` the copy that serves it; with need, cards, evictions and seconds."""
    context_there: Maybe[int] = NOT_READ
    """Tokens it will have, or has, on the target."""
    cold_on: tuple[str, ...] = ()
    """Of `last_copy`: machines with the files."""
    rejected: tuple[RejectedMachine, ...] = ()
    """Why no other machine takes it; empty where one does."""
    keep: int = 0
    """Resident copies that the catalog wants in the fleet; 0: it says nothing."""
    pull_bytes: Maybe[int] = 0
    """What the target has to fetch first."""
    num_ctx: int | None = None
    """Tokens that the load names; None: none, so that the next caller who names none finds it warm."""
    follows: str = ""
    """Of `covered`: the machine, drained with it, whose copy is moved to the target first; empty: what covers
    it is resident already."""

    @property
    def is_lost(self) -> bool:
        """No copy is resident anywhere once the machine is empty."""
        return self.drain_class in ("last_copy", "cannot")

    @property
    def result(self) -> str:
        """As the journal has it: `COVERED also on cleo (same digest)`."""
        return f"{CLASS_WORDS[self.drain_class]} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The preview of one machine's drain."""

    machine: str
    copies: tuple[PlannedCopy, ...]
    """In the order in which they are worked on; those that nothing is done for last."""
    excluded: tuple[RejectedMachine, ...] = ()
    """Machines that are no target for anything, with why: maintenance, drain, stale."""
    load_bytes: int = 0
    """Of files, over all copies that are loaded; unknown sizes left out."""
    seconds: Maybe[float] = 0.0
    """Until the last load is done: loads on one target follow each other, targets work side by side."""
    taken_at: float = 0.0
    """Epoch seconds of the snapshot."""
    is_exact: bool = True
    """Every packing was tried; False: the best that was found in bounded time."""
    problem: str = ""
    """Why nobody knows what is loaded there now: offline, stale, an engine that does not answer."""
    evicted_last: tuple[str, ...] = ()
    """Idle copies that go on targets for what is loaded there, and are resident nowhere else then."""

    def of_class(self, *classes: DrainClass) -> tuple[PlannedCopy, ...]:
        """Lines of these classes."""
        return tuple([line for line in self.copies if line.drain_class in classes])

    def refused(self, options: DrainOptions) -> tuple[PlannedCopy, ...]:
        """Lines that need the operator's word first: their class is not among the forced ones, and they are
        not left where they are."""
        wanted = [name for name in FORCED_CLASSES if name not in options.forced]
        return tuple([line for line in self.of_class(*wanted) if not options.skips_copy(line.copy)])

    @property
    def targets(self) -> dict[str, int]:
        """Machine -> how many copies are loaded there."""
        found: dict[str, int] = {}
        for line in self.copies:
            if line.drain_class in LOADING_CLASSES and line.target is not None:
                found[line.target.machine] = found.get(line.target.machine, 0) + 1
        return found


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far one copy is."""

    copy: SourceCopy
    drain_class: DrainClass
    state: CopyState = "pending"
    since: float = 0.0
    """Epoch seconds at which the state began."""
    target: str | None = None
    """Machine that it is loaded on, or that covers it."""
    text: str = ""
    """What it waits for, how far it is, or why it ended: code and words."""
    eta_s: Maybe[float] = NOT_READ
    """Of the whole step in work."""
    failures: tuple[str, ...] = ()
    """What targets said that could not take it."""
    unloads: int = 0
    """How often its engine was asked to unload it."""
    is_moved: bool = False
    """It was loaded on its target by this drain: what `undrain --return` moves back."""

    @property
    def is_ended(self) -> bool:
        return self.state in END_STATES


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain flag as it is stored: on until `undrain`, whatever its state."""

    id: str
    machine: str
    state: DrainState
    reason: str
    by: str
    """`user@host`."""
    since: float
    until: float | None = None
    """When the work should be over; ends nothing."""
    options: DrainOptions = DrainOptions()
    text: str = ""
    """The condition that is missing, or what failed; empty while all is well."""
    revision: int = 0
    """Grows with every change of this flag."""
    changed_by: str = ""
    changed_at: float = 0.0


@dataclass(frozen=True, slots=True)
class DrainLock:
    """Who works on a drain now."""

    machine: str
    holder: str
    """`user@host`."""
    pid: int
    taken_at: float
    beat_at: float
    """Epoch seconds of its last sign of life."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One step, as it was written down; a hint to whoever resumes, never the truth."""

    at: float
    machine: str
    drain_id: str
    by: str
    pid: int
    step: str
    """`started`, `planned`, `load`, `loaded`, `verified`, `switched`, `unload`, `gone`, `blocked`, …"""
    copy: str = ""
    """Name of the copy; empty where the step is about the machine."""
    target: str = ""
    result: str = ""
    """`ok`, or what went wrong."""
    call: str = ""
    """The remote call as it was made: `POST bora:11434/api/generate {"model": …}`; no secrets."""
    seq: int = 0
    """Its place in the journal; set by the store."""


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """All that is stored of one drain."""

    drain: Drain
    copies: tuple[CopyProgress, ...] = ()
    lock: DrainLock | None = None
    journal: tuple[JournalEntry, ...] = ()
    """The last entries, oldest first."""
    is_seen: bool = False
    """Its state was compared with the machine, not only read."""

    def as_shown(self, flag: DrainFlag | None) -> DrainStatus:
        """With the state that the machine shows, where that was compared with what is stored now: one that
        was drained may be refilled, a blocked one empty."""
        if flag is None or (flag.id, flag.revision) != (self.drain.id, self.drain.revision):
            return self
        return replace(self, drain=replace(self.drain, state=flag.state, text=flag.text), is_seen=True)
