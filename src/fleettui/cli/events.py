"""`fleettui events`: the timeline that a running dashboard or `status --watch` records."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleettui.cli import diagnostics, output
from fleettui.cli.colors import paint
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.model.event import Event
from fleettui.model.record import dataclass, replace
from fleettui.store.database import Store, StoreBusyError, StoreError
from fleettui.store.events import READ_ROWS, EventWriter, known_machines, read_events, read_writer
from fleettui.view.event_document import event_document, events_document
from fleettui.view.event_lines import SAMPLE, event_lines, name_column
from fleettui.view.glyphs import Glyphs, glyphs_of

if TYPE_CHECKING:
    from fleettui.model.server_place import ServerAccess

DEFAULT_SINCE_S = 86_400.0
FOLLOWED_FIRST = 10
FOLLOW_PERIOD_S = 0.5
FOLLOW_SERVER_S = 1.0
RECORDERS = "open the dashboard (fleettui), or run: fleettui status --watch, or fleettui serve"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of the timeline."""

    machines: tuple[str, ...]
    kinds: tuple[str, ...]
    since: float | None
    limit: int = READ_ROWS
    after_id: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the state file, or the server, holds."""

    events: tuple[Event, ...] = ()
    last_id: int = 0
    writer: EventWriter | None = None
    known: frozenset[str] = frozenset()
    """Machines that stand in the timeline."""


def events_command(arguments: Namespace) -> int:
    """Print what was recorded; with --follow go on with what is."""
    folders = resolve_folders(arguments)
    names, since = tuple(arguments.names), arguments.since
    wanted = _Wanted(names, tuple(arguments.kind), since)
    if arguments.follow and since is None:
        wanted = replace(wanted, limit=FOLLOWED_FIRST)
    elif since is None:
        wanted = replace(wanted, since=time.time() - DEFAULT_SINCE_S)
    answer = _read(folders, wanted)
    if folders.server is not None and not arguments.json:
        diagnostics.say(f"via server {folders.server.place.text}")
    _check_names(folders, names, answer)
    page = _Page(folders, is_json=arguments.json)
    if arguments.follow:
        return _follow(folders, wanted, answer, page)
    now = time.time()
    recorder = answer.writer if answer.writer is not None and answer.writer.is_alive(now) else None
    if arguments.json:
        output.write_document(
            events_document(answer.events, wanted.since, None if recorder is None else recorder.kind)
        )
        return EXIT_OK
    page.print_all(answer.events, now)
    _tell_gaps(answer, wanted, recorder)
    return EXIT_OK


def _follow(folders: Folders, wanted: _Wanted, answer: _Answer, page: _Page) -> int:
    """Print what comes until interrupted; the file is opened anew each time, it may not be there yet."""
    page.print_more(answer.events)
    told: str | None = None
    is_away = False
    while True:
        told = _tell_recorder(answer.writer, told)
        time.sleep(FOLLOW_PERIOD_S if folders.server is None else FOLLOW_SERVER_S)
        after = replace(wanted, since=None, limit=READ_ROWS, after_id=answer.last_id)
        try:
            fresh = _read(folders, after)
        except _Later as later:
            if folders.server is not None and not is_away:
                diagnostics.say_error("events", later.text, "asked again until it is back")
            is_away = folders.server is not None
            continue
        if is_away and folders.server is not None:
            diagnostics.say(f"fleettui events: the server {folders.server.place.text} is back")
        is_away = False
        # A state file that was moved away begins its numbers anew.
        answer = fresh if fresh.last_id >= answer.last_id else _Answer(writer=fresh.writer)
        page.print_more(answer.events)


class _Later(CommandError):
    """It cannot be read for a moment: the file is busy, or nobody answers."""


def _read(folders: Folders, wanted: _Wanted) -> _Answer:
    """What is stored now. Raises CommandError, _Later."""
    if folders.server is not None:
        return _read_there(folders.server, wanted)
    try:
        return _read_here(folders, wanted)
    except StoreBusyError as error:  # another process holds the file for a moment
        raise _Later(str(error), exit_code=EXIT_NEGATIVE) from None
    except StoreError as error:
        raise CommandError(str(error), exit_code=EXIT_NEGATIVE) from None


def _read_there(access: ServerAccess, wanted: _Wanted) -> _Answer:
    """What a running server has stored. Raises CommandError, _Later."""
    from fleettui.cli.server_errors import command_error
    from fleettui.fleet.attached.reading import fetch_events
    from fleettui.net.server_client import ServerError

    try:
        found = fetch_events(
            access,
            since=wanted.since,
            machines=wanted.machines,
            kinds=wanted.kinds,
            after_id=wanted.after_id,
            limit=wanted.limit,
        )
    except ServerError as error:
        told = command_error(error)
        if error.is_absent:
            raise _Later(told.text, *told.hints, exit_code=told.exit_code) from None
        raise told from None
    # Its clock may differ from ours: whether somebody records is what the server says.
    owner, now = "server" if found.has_recorder else "", time.time()
    writer = EventWriter(owner, found.recorder_pid, found.recorder, now) if found.recorder else None
    return _Answer(found.events, found.last_id, writer, found.known)


def _read_here(folders: Folders, wanted: _Wanted) -> _Answer:
    """What the state file holds now. Raises StoreError."""
    store = Store.open_readonly(folders.state_dir)
    if store is None:
        return _Answer(last_id=wanted.after_id)
    with store:
        last_id, events = read_events(
            store,
            folders.machines_dir,
            since=wanted.since,
            machines=wanted.machines,
            kinds=wanted.kinds,
            after_id=wanted.after_id,
            limit=wanted.limit,
        )
        writer = read_writer(store, folders.machines_dir)
        known = known_machines(store, folders.machines_dir) if wanted.machines else ()
    return _Answer(events, last_id, writer, frozenset(known))


def _check_names(folders: Folders, names: Sequence[str], answer: _Answer) -> None:
    """Names of machines that are gone are known as long as the timeline has them."""
    missing = [name for name in names if name not in answer.known]
    if not missing:
        return
    from fleettui.cli.names import unknown_name
    from fleettui.config.machine_folder import load_machines

    folder = folders.machines_dir
    if folders.server is None:
        files = load_machines(folder)
    else:
        from fleettui.cli.attached_status import files_of, read_fleet

        fleet = read_fleet(folders.server)
        files, folder = files_of(fleet), fleet.machines_dir
    for name in missing:
        if files.find(name) is None:
            raise unknown_name(name, files, folder, also=answer.known, place=" or in its timeline")


def _tell_gaps(answer: _Answer, wanted: _Wanted, recorder: EventWriter | None) -> None:
    if answer.last_id == 0:
        diagnostics.say(f"fleettui events: nothing was recorded yet; {RECORDERS}")
        return
    if not answer.events:
        diagnostics.say("fleettui events: nothing of that kind happened in that time")
    if len(answer.events) >= wanted.limit:
        diagnostics.say(f"fleettui events: only the newest {wanted.limit} are printed; narrow --since")
    if recorder is None:
        diagnostics.say(f"fleettui events: nobody records at the moment; {RECORDERS}")


def _tell_recorder(writer: EventWriter | None, told: str | None) -> str:
    """stderr: who records, each time that changes."""
    is_alive = writer is not None and writer.is_alive(time.time())
    text = f"recorded by {writer.kind}, process {writer.pid}" if writer is not None and is_alive else ""
    if not text:
        text = f"nobody records at the moment; {RECORDERS}; waiting"
    if text != told and not (told is None and is_alive):
        diagnostics.say(f"fleettui events: {text}")
    return text


class _Page:
    """Events on stdout, in the colours and signs of the settings."""

    def __init__(self, folders: Folders, *, is_json: bool) -> None:
        self._is_json = is_json
        self._has_color = output.is_terminal() and folders.appearance.has_color
        has_signs = output.can_encode(SAMPLE)
        self._glyphs: Glyphs = glyphs_of(folders.appearance.glyphs or "" if has_signs else "ascii")
        self._width = output.terminal_width() if output.is_terminal() else None
        self._name_width = 0

    def print_all(self, events: Sequence[Event], now: float) -> None:
        """The whole answer."""
        self._print_lines(events, now)

    def print_more(self, events: Sequence[Event]) -> None:
        """Events that came; the column of names only grows."""
        if not events:
            return
        if self._is_json:
            for event in events:
                output.write_document({"schema": 1, **event_document(event)}, is_compact=True)
            return
        self._width = output.terminal_width() if output.is_terminal() else None
        self._name_width = max(self._name_width, name_column(event.machine for event in events))
        self._print_lines(events, None)

    def _print_lines(self, events: Sequence[Event], now: float | None) -> None:
        lines = event_lines(
            events,
            width=self._width,
            utc_offset_s=time.localtime().tm_gmtoff,
            now=now,
            glyphs=self._glyphs,
            name_width=self._name_width or None,
        )
        output.write_lines(paint(cells, has_color=self._has_color) for cells in lines)
