"""What the dashboard asks of the running core, and how it is dressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from fleettui.model.event import Event
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds
from fleettui.view.glyphs import Glyphs, glyphs_of

if TYPE_CHECKING:
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.fleet.history import FleetHistory
    from fleettui.fleet.maintenance import FlagOperations
    from fleettui.fleet.poller import MachinePoller
    from fleettui.fleet.profile_book import ProfileBook
    from fleettui.fleet.route_desk import RouteDesk
    from fleettui.fleet.shell import ShellOperations
    from fleettui.fleet.trust_operations import TrustOperations
    from fleettui.fleet.ui_state import UiState


class EventSource(Protocol):
    """The fleet's timeline as the dashboard reads it."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Oldest first."""

    @property
    def error(self) -> str | None:
        """Why events are not kept."""

    def subscribe(self, subscriber: Callable[[tuple[Event, ...]], None]) -> Callable[[], None]:
        """Hear of new events; the answer ends that."""


class FleetPort(Protocol):
    """The part of `FleetService` that the dashboard uses."""

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest one."""

    @property
    def interval_s(self) -> float:
        """Seconds between two polls of a machine."""

    @property
    def is_paused(self) -> bool:
        """True while nothing is polled."""

    @property
    def origin(self) -> str:
        """Whom it asks instead of the machines, in two words; empty: it asks the machines."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the operator should know about the service itself, one sentence each."""

    @property
    def history(self) -> FleetHistory | None:
        """Samples for graphs; None: none are kept."""

    @property
    def events(self) -> EventSource:
        """The timeline."""

    @property
    def flags(self) -> FlagOperations | None:
        """Maintenance on, off, undo; None without a state folder."""

    @property
    def trust(self) -> TrustOperations | None:
        """Decisions about host keys; None without a state folder."""

    @property
    def shells(self) -> ShellOperations | None:
        """Shells on machines; None without a state folder."""

    @property
    def ui_state(self) -> UiState | None:
        """What the dashboard remembers between runs; None without a state folder."""

    @property
    def routing(self) -> RouteDesk | None:
        """Leases, and what is stored for routing; None without a state folder."""

    @property
    def drains(self) -> DrainDesk | None:
        """Who empties machines; None without a state folder."""

    @property
    def profiles(self) -> ProfileBook | None:
        """Stored profiles of machines; None without a state folder."""

    @property
    def pollers(self) -> tuple[MachinePoller, ...]:
        """The running pollers: whoever reads a machine's log asks over their connections."""

    def subscribe(self, callback: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        """Call back in the event loop on each new snapshot; the answer ends that."""

    async def start(self) -> None:
        """Begin to poll."""

    async def stop(self) -> None:
        """End all polls and connections."""

    def poll_now(self, name: str | None = None) -> None:
        """Ask one machine, or all, at once; waiting times after failures end."""

    def set_interval(self, seconds: float) -> None:
        """Change the pace."""

    def set_paused(self, is_paused: bool) -> None:
        """Stop or resume polling."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the dashboard is dressed: settings that only it needs."""

    theme: str | None = None
    """Name of a theme; None: the one chosen last, else ours, dark."""
    glyphs: Literal["unicode", "ascii"] = "unicode"
    has_color: bool = True
    """False: no colours at all, as NO_COLOR asks."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action id -> keys that replace the declared ones."""
    is_readonly: bool = False
    """Actions that change something are not there."""
    hidden: frozenset[str] = frozenset()
    """Further actions that are not there."""
    columns: tuple[str, ...] | None = None
    """Keys of the columns to choose from; None: all."""
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    utc_offset_s: int | None = None
    """Of the operator's clock; None: times are shown in UTC."""

    @property
    def glyph_set(self) -> Glyphs:
        """The signs themselves."""
        return glyphs_of(self.glyphs)
