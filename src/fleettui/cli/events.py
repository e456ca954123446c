"""`fleettui events`: the timeline that a running dashboard or `status --watch` records."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence

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

DEFAULT_SINCE_S = 86_400.0
FOLLOWED_FIRST = 10
FOLLOW_PERIOD_S = 0.5
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
    """What the state file holds."""

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
    try:
        answer = _read(folders, wanted)
    except StoreError as error:
        raise CommandError(str(error), exit_code=EXIT_NEGATIVE) from None
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
    while True:
        told = _tell_recorder(answer.writer, told)
        time.sleep(FOLLOW_PERIOD_S)
        after = replace(wanted, since=None, limit=READ_ROWS, after_id=answer.last_id)
        try:
            fresh = _read(folders, after)
        except StoreBusyError:  # another process holds the file for a moment
            continue
        except StoreError as error:
            raise CommandError(str(error), exit_code=EXIT_NEGATIVE) from None
        # A state file that was moved away begins its numbers anew.
        answer = fresh if fresh.last_id >= answer.last_id else _Answer(writer=fresh.writer)
        page.print_more(answer.events)


def _read(folders: Folders, wanted: _Wanted) -> _Answer:
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

    files = load_machines(folders.machines_dir)
    for name in missing:
        if files.find(name) is None:
            raise unknown_name(
                name, files, folders.machines_dir, also=answer.known, place=" or in its timeline"
            )


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
