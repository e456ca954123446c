"""`fleettui drain status`: how far drains are, once or until they have ended."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence

from fleettui.cli import output
from fleettui.cli.drain_talk import DrainTalk, check_machines
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.live import LiveBlock
from fleettui.model.drain import WORKING, DrainStatus
from fleettui.model.snapshot import DrainFlag, FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.drains import load_drain, load_drains
from fleettui.store.flags import load_fresh_fleet
from fleettui.view.cells import Cell, Cells
from fleettui.view.drain_document import off_document, one_status_document, status_document
from fleettui.view.drain_status import journal_lines, progress_text, status_lines
from fleettui.view.text import clean

JOURNAL_SHOWN = 20
POLLS_TO_SEE = 4
"""Two without a copy, and the time that they take."""
Found = tuple[tuple[str, DrainStatus | None], ...]
"""Names with their drains; None: the machine has none."""


def status_command(arguments: Namespace) -> int:
    """Print what is stored of each drain, with the state that the machine shows where somebody looks."""
    folders = resolve_folders(arguments)
    names = tuple(dict.fromkeys(arguments.names))
    found = load_statuses(folders, names)
    check_machines(names, folders, [name for name, status in found if status is not None])
    if not arguments.follow:
        _print(found, folders, arguments, has_journal=len(names) == 1)
        return EXIT_OK
    names = tuple(name for name, _ in found)
    from fleettui.cli.serving import run_serving

    if folders.is_readonly:
        return run_serving(_watch(folders, names, arguments))
    from fleettui.cli.drain_desk import command_error
    from fleettui.fleet.drain.desk import DrainError

    try:
        return run_serving(_follow(folders, names, arguments))
    except DrainError as error:
        raise command_error(error, folders, "nothing was done") from None


def load_statuses(folders: Folders, names: Sequence[str] = ()) -> Found:
    """Of these machines, or of all whose drain flag is on. Raises CommandError."""
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return tuple((name, None) for name in names)
        with store:
            folder = folders.machines_dir
            wanted = names or tuple(load_drains(store, folder))
            fleet = load_fresh_fleet(store, folder, None, time.time())
            return tuple(
                (name, with_shown(load_drain(store, folder, name), flag_of(fleet, name))) for name in wanted
            )
    except StoreError as error:
        raise CommandError(f"drains cannot be read: {error}") from None


def flag_of(fleet: FleetSnapshot | None, name: str) -> DrainFlag | None:
    """As the machine shows it."""
    found = None if fleet is None else fleet.find(name)
    return None if found is None else found.drain


def with_shown(status: DrainStatus | None, flag: DrainFlag | None) -> DrainStatus | None:
    """A drain with the state that the machine shows."""
    return None if status is None else status.as_shown(flag)


def _print(found: Found, folders: Folders, arguments: Namespace, *, has_journal: bool = False) -> None:
    now = time.time()
    if arguments.json:
        output.write_document(_document(found, now, EXIT_OK), is_compact=arguments.follow)
        return
    talk = DrainTalk(folders)
    talk.print_lines(_lines(found, now, talk, has_journal=has_journal))


def _document(found: Found, now: float, code: int) -> dict[str, object]:
    document = status_document((), now, exit_code=code)
    document["machines"] = [
        off_document(name) if status is None else one_status_document(status) for name, status in found
    ]
    return document


def _lines(found: Found, now: float, talk: DrainTalk, *, has_journal: bool = False) -> list[Cells]:
    width, offset_s = output.terminal_width(), time.localtime(now).tm_gmtoff
    lines: list[Cells] = []
    for name, status in found:
        lines += [()] if lines else []
        if status is None:
            lines.append((Cell(f"{clean(name)}: not draining"),))
            continue
        lines += status_lines(status, now, width, talk.glyphs, offset_s)
        if has_journal and status.journal:
            lines.append((Cell(" what was done:", "dim"),))
            lines += journal_lines(status.journal[-JOURNAL_SHOWN:], width, talk.glyphs, offset_s)
    return lines or [(Cell("no machine is draining"),)]


# -- until they have ended -------------------------------------------------------------------------------


async def _follow(folders: Folders, names: tuple[str, ...], arguments: Namespace) -> int:
    """Work on what nobody works on, and show all of it."""
    from fleettui.cli.drain_desk import opened_desk, wait_for_answers

    async with opened_desk(folders, "drain status --follow") as (service, desk):
        screen = _Screen(folders, arguments)
        leave = desk.subscribe(screen.talk.note)

        stored: dict[str, str] = {}

        async def look() -> Found:
            await desk.resume()
            fleet, found = service.snapshot, []
            for name in names:
                status = await desk.status(name)
                stored[name] = "" if status is None else status.drain.state
                found.append((name, with_shown(status, flag_of(fleet, name))))
            return tuple(found)

        def is_settled(name: str, state: str) -> bool:
            """One that is blocked may be empty by now: that takes polls to see, and is written down then."""
            if state == "drained":  # whoever works on it writes that down after two polls, and we may be it
                return stored[name] == state
            return time.monotonic() >= looked_at

        try:
            await wait_for_answers(service)
            looked_at = time.monotonic() + POLLS_TO_SEE * service.interval_s
            return await _until_ended(look, screen, is_settled)
        finally:
            leave()


async def _watch(folders: Folders, names: tuple[str, ...], arguments: Namespace) -> int:
    """The same, only looking."""

    async def look() -> Found:
        return load_statuses(folders, names) if names else ()

    return await _until_ended(look, _Screen(folders, arguments))


async def _until_ended(
    look: Callable[[], Awaitable[Found]],
    screen: _Screen,
    is_settled: Callable[[str, str], bool] = lambda _, __: True,
) -> int:
    """`is_settled`: a state in which nobody works was looked at long enough."""
    while True:
        found = await look()
        screen.show(found)
        states = [(name, status.drain.state) for name, status in found if status is not None]
        if all(state not in WORKING and is_settled(name, state) for name, state in states):
            return screen.end(found)
        await screen.talk.wait()


class _Screen:
    """A block that is drawn again on a terminal, else a line or a document for each change."""

    def __init__(self, folders: Folders, arguments: Namespace) -> None:
        self.talk = DrainTalk(folders)
        self._is_json = arguments.json
        self._block = LiveBlock() if output.is_terminal() and not arguments.json else None
        self._told: object = None

    def show(self, found: Found) -> None:
        """What is new."""
        now = time.time()
        if self._block is not None:
            width, height = output.terminal_size()
            self._block.draw(
                self.talk.painted(_lines(found, now, self.talk)[: max(1, height - 2)], width - 1)
            )
            return
        news = _news(found)
        if news == self._told:
            return
        before, self._told = self._told, news
        if self._is_json:
            output.write_document(_document(found, now, EXIT_OK), is_compact=True)
            return
        known = set(before) if isinstance(before, tuple) else set()
        for name, status in found:
            for copy in () if status is None else status.copies:
                if (name, *copy.copy.key, copy.state, copy.target) not in known:
                    output.write_lines([progress_text(name, copy)])

    def end(self, found: Found) -> int:
        """The last word, and the exit code."""
        is_good = all(status is not None and status.drain.state == "drained" for _, status in found)
        code = EXIT_OK if is_good else EXIT_NEGATIVE
        if self._is_json:
            return code
        if self._block is not None:
            self._block.erase()
        self.talk.print_lines(_lines(found, time.time(), self.talk))
        return code


def _news(found: Found) -> tuple[object, ...]:
    """What a change of is worth a line."""
    news: list[object] = []
    for name, status in found:
        if status is None:
            news.append((name,))
            continue
        news.append((name, status.drain.state, status.drain.text))
        news += [(name, *copy.copy.key, copy.state, copy.target) for copy in status.copies]
    return tuple(news)
