"""What a running server knows, as the objects that a command works with."""

from __future__ import annotations

from fleettui import __version__
from fleettui.fleet.attached.asking import ask_bytes, ask_document
from fleettui.model.event import Event
from fleettui.model.profile import Profile
from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.server_client import ServerError, no_server
from fleettui.store.event_text import read_event
from fleettui.store.fleet_text import WIRE_FORMAT, decode_fleet
from fleettui.view.profile_document import profile_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleettui.model.server_place import ServerAccess, ServerPlace


@dataclass(frozen=True, slots=True)
class ServedEvents:
    """A part of the timeline."""

    events: tuple[Event, ...]
    """Oldest first."""
    last_id: int
    """Of the last event of the fleet."""
    known: frozenset[str] = frozenset()
    """Machines that stand in the timeline; empty where no machine was asked for."""
    recorder: str = ""
    """Who writes events, or wrote last; empty: nobody ever did."""
    recorder_pid: int = 0
    has_recorder: bool = False
    """It writes now."""


@dataclass(frozen=True, slots=True)
class ServedPlanInputs:
    """What plans are made of beside the fleet."""

    profiles: dict[str, Profile]
    rates: dict[str, float]
    """How fast machines were measured to load, in bytes a second."""


def fetch_fleet(access: ServerAccess) -> FleetSnapshot:
    """The newest snapshot. Raises ServerError."""
    body = ask_bytes(access, "/api/attach/fleet")
    head, _, text = body.decode("utf-8", "replace").partition("\n")
    check_form(access.place, head)
    fleet = decode_fleet(text)
    if fleet is None:
        raise no_server(access.place, "half a snapshot")
    return fleet


def check_form(place: ServerPlace, head: str) -> None:
    """`fleettui VERSION FORM`: Raises ServerError where snapshots have another form there."""
    name, _, rest = head.partition(" ")
    version, _, wire_format = rest.partition(" ")
    if name != "fleettui":
        raise no_server(place, "no snapshot")
    if wire_format != WIRE_FORMAT:
        raise ServerError(
            f"the server {place.text} is fleettui {version[:40]} and this is {__version__}: each has a form "
            "of snapshots that the other cannot read",
            "install the same version on both sides",
            "or ask the machines from here: --standalone",
        )


def fetch_events(
    access: ServerAccess,
    *,
    since: float | None,
    machines: Sequence[str],
    kinds: Sequence[str],
    after_id: int,
    limit: int,
) -> ServedEvents:
    """The timeline as the server has stored it. Raises ServerError."""
    query: list[tuple[str, object]] = [("after_id", after_id), ("limit", limit)]
    if since is not None:
        query.append(("since", since))
    query += [("machine", name) for name in machines] + [("kind", kind) for kind in kinds]
    document = ask_document(access, "/api/attach/events", query)
    rows, last_id = document.get("events"), document.get("last_id")
    events = [read_event(row) for row in rows] if isinstance(rows, list) else [None]
    found = tuple(event for event in events if event is not None)
    if len(found) != len(events) or not isinstance(last_id, int):
        raise no_server(access.place, "events of another form")
    known = frozenset(map(str, document.get("known") or ()))
    writer: Any = document.get("writer")
    if not isinstance(writer, dict):
        return ServedEvents(found, last_id, known)
    pid = writer.get("pid")
    return ServedEvents(
        found,
        last_id,
        known,
        str(writer.get("kind")),
        pid if isinstance(pid, int) else 0,
        writer.get("alive") is True,
    )


def fetch_plan_inputs(access: ServerAccess) -> ServedPlanInputs:
    """Stored profiles and measured rates. Raises ServerError."""
    document = ask_document(access, "/api/attach/plan")
    profiles, rates = document.get("profiles"), document.get("rates")
    try:
        found = [profile_of(item) for item in profiles or ()]
        speeds = {str(name): float(rate) for name, rate in dict(rates or {}).items()}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise no_server(access.place, "profiles of another form") from None
    return ServedPlanInputs({item.name: item for item in found}, speeds)
