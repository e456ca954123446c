"""Messages of `/api/attach/stream`, read incrementally, and the fleet that they tell: bytes in, state out.

Their form is that of serve/stream_form.py.
"""

from __future__ import annotations

import json

from fleettui.fleet.attached.reading import check_form
from fleettui.model.event import Event
from fleettui.model.record import dataclass, replace
from fleettui.model.server_place import ServerPlace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.net.server_client import no_server
from fleettui.store.event_text import read_event
from fleettui.store.fleet_text import decode_head, decode_machines
from fleettui.view.text import clean

MAX_MESSAGE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Message:
    """One server-sent event."""

    id: str
    kind: str
    """`snapshot`, `machines`, `event`."""
    lines: tuple[str, ...]


class MessageReader:
    """Server-sent events out of any pieces of a stream."""

    def __init__(self, place: ServerPlace) -> None:
        self._place = place
        self._buffer = bytearray()

    def receive(self, data: bytes) -> list[Message]:
        """The messages that are whole by now. Raises ServerError."""
        looked = max(0, len(self._buffer) - 1)
        self._buffer += data
        found = []
        while (end := self._buffer.find(b"\n\n", looked)) >= 0:
            message = _message(bytes(self._buffer[:end]))
            if message is not None:
                found.append(message)
            del self._buffer[: end + 2]
            looked = 0
        if len(self._buffer) > MAX_MESSAGE_BYTES:
            raise no_server(self._place, "a message without an end")
        return found


def _message(data: bytes) -> Message | None:
    """None for comments and for words to browsers."""
    named: dict[str, str] = {}
    lines = []
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, value = line.partition(": ")
        if name == "data":
            lines.append(value)
        else:
            named[name] = value
    return Message(named.get("id", ""), named["event"], tuple(lines)) if "event" in named and lines else None


class ServedFleet:
    """The fleet as the messages so far have told it."""

    def __init__(self, place: ServerPlace) -> None:
        self._place = place
        self._machines: dict[str, MachineSnapshot] = {}
        self.fleet: FleetSnapshot | None = None
        """None before the first message."""
        self.events: list[Event] = []
        """Of the last message: those that are new, or came again."""
        self.notices: tuple[str, ...] = ()
        """What the server's operator should know."""

    def take(self, message: Message) -> None:
        """Bring it up to date. Raises ServerError for a message of another form."""
        self.events = []
        try:
            if message.kind == "snapshot":
                self._take_whole(message.lines)
            elif message.kind == "machines":
                self._take_changes(message.lines)
            elif message.kind == "event":
                self._take_events([json.loads(message.lines[0])])
        except (ValueError, TypeError, LookupError, RecursionError):
            raise no_server(self._place, f"a message {message.kind[:20]} of another form") from None

    def _take_whole(self, lines: tuple[str, ...]) -> None:
        form, head, events, notices, *rest = lines
        check_form(self._place, form)
        machines = decode_machines(rest)
        fleet = None if machines is None else decode_head(head, machines)
        if fleet is None or machines is None:
            raise ValueError
        self.fleet = fleet
        self._machines = {item.name: item for item in machines}
        self._take_notices(json.loads(notices))
        self._take_events(json.loads(events))

    def _take_changes(self, lines: tuple[str, ...]) -> None:
        head, *rest = lines
        taken_at, interval_s, paused_at, notices, names = json.loads(head)
        changed = decode_machines(rest)
        if changed is None or self.fleet is None:
            raise ValueError
        self._machines |= {item.name: item for item in changed}
        self._machines = {name: self._machines[name] for name in names}
        self._take_notices(notices)
        self.fleet = replace(
            self.fleet,
            taken_at=float(taken_at),
            interval_s=float(interval_s),
            paused_at=paused_at,
            machines=tuple(self._machines.values()),
        )

    def _take_notices(self, texts: list[object]) -> None:
        self.notices = tuple(clean(str(text)) for text in texts)

    def _take_events(self, rows: list[object]) -> None:
        for row in rows:
            event = read_event(row)
            if event is None:
                raise ValueError
            self.events.append(event)
