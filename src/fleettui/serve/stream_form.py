"""How a stream's messages are encoded: as JSON documents for everybody, or whole for another fleettui."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fleettui import __version__
from fleettui.model.clock import iso_utc
from fleettui.serve.answers import SCHEMA, encode_document
from fleettui.store.codec import MachineEncoder
from fleettui.store.event_text import event_row
from fleettui.store.fleet_text import WIRE_FORMAT, encode_head, machine_lines
from fleettui.view.document import infrastructure_document, machine_document
from fleettui.view.event_document import event_document

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService
    from fleettui.model.event import Event
    from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot


class StreamForm(Protocol):
    """Encodes in threads; a text has no line break that is not meant."""

    has_events: bool
    """A whole snapshot brings the events of the timeline along."""

    def needs_whole(self, before: FleetSnapshot, fleet: FleetSnapshot) -> bool:
        """Something changed that `changes` does not tell."""

    def whole(self, fleet: FleetSnapshot, now: float) -> bytes:
        """The whole fleet."""

    def changes(
        self, fleet: FleetSnapshot, changed: Sequence[MachineSnapshot], gone: Sequence[str], now: float
    ) -> bytes:
        """Machines that changed, and names of those that went."""

    def event(self, event: Event) -> bytes:
        """One event."""


class DocumentForm:
    """`/api/stream`."""

    has_events = False

    def needs_whole(self, before: FleetSnapshot, fleet: FleetSnapshot) -> bool:
        return fleet.problems is not before.problems  # rare; `errors` stands in whole snapshots only

    def whole(self, fleet: FleetSnapshot, now: float) -> bytes:
        return encode_document(infrastructure_document(fleet, now))

    def changes(
        self, fleet: FleetSnapshot, changed: Sequence[MachineSnapshot], gone: Sequence[str], now: float
    ) -> bytes:
        return encode_document(
            {
                "schema": SCHEMA,
                "taken_at": iso_utc(fleet.taken_at),
                "machines": [machine_document(machine, now) for machine in changed],
                "gone": gone,
            }
        )

    def event(self, event: Event) -> bytes:
        document: dict[str, Any] = {"schema": SCHEMA, **event_document(event)}
        return encode_document(document)


class AttachForm:
    """`/api/attach/stream`, read by fleet/attached/messages.py. Lines of a message:

    snapshot: `fleettui VERSION FORM`, the head, events as a JSON list of rows, notices as one of texts, then
    a line for each machine. machines: `[taken_at, interval_s, paused_at, notices, names in order]`, then the
    same.
    """

    has_events = True

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._encoder = MachineEncoder()

    def needs_whole(self, before: FleetSnapshot, fleet: FleetSnapshot) -> bool:
        return fleet.problems is not before.problems or fleet.catalog is not before.catalog

    def whole(self, fleet: FleetSnapshot, now: float) -> bytes:
        events = [event_row(event) for event in self._service.events.events]
        lines = [
            f"fleettui {__version__} {WIRE_FORMAT}",
            encode_head(fleet),
            json.dumps(events, separators=(",", ":")),
            json.dumps(self._service.notices),
            *machine_lines(fleet.machines, self._encoder),
        ]
        return _data(lines)

    def changes(
        self, fleet: FleetSnapshot, changed: Sequence[MachineSnapshot], gone: Sequence[str], now: float
    ) -> bytes:
        for name in gone:
            self._encoder.forget(name)
        names = [machine.name for machine in fleet.machines]
        head = [fleet.taken_at, fleet.interval_s, fleet.paused_at, self._service.notices, names]
        told = json.dumps(head, separators=(",", ":"))
        return _data([told, *machine_lines(changed, self._encoder)])

    def event(self, event: Event) -> bytes:
        return json.dumps(event_row(event), separators=(",", ":")).encode()


def _data(lines: Sequence[str]) -> bytes:
    """Of one message with several lines of data."""
    return "\ndata: ".join(lines).encode()
