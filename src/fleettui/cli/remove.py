"""`fleettui machines remove`."""

from __future__ import annotations

import time
from argparse import Namespace

from fleettui.cli import diagnostics
from fleettui.cli.errors import EXIT_OK
from fleettui.cli.folders import Folders
from fleettui.cli.names import unknown_name
from fleettui.cli.trust import MustAsk, changing_folders, finish, make_desk, run
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import TrustError
from fleettui.model.flag_words import drain_words, maintenance_words
from fleettui.store.database import Store, StoreError
from fleettui.store.snapshots import load_for_routing
from fleettui.view.text import clean
from fleettui.view.units import duration


def remove_command(arguments: Namespace) -> int:
    """Show what belongs to the machine, offer to drain it first, ask for its name, forget it."""
    folders = changing_folders(arguments)
    desk = make_desk(folders)
    name = arguments.name
    try:
        desk.book.refresh()
        can_drain = _show(folders, desk, name, is_file_deleted=arguments.delete_file)
        if not arguments.yes and _confirm(name, can_drain=can_drain) == _DRAIN:
            _drain_first(arguments, name)
            _confirm(name)
        result = run(desk, desk.remove(name, is_file_deleted=arguments.delete_file))
    except TrustError as error:
        return finish(arguments, [], [error])
    return finish(arguments, [result], [])


_DRAIN = "drain"
"""Typed in place of the name."""


def _show(folders: Folders, desk: TrustDesk, name: str, *, is_file_deleted: bool) -> bool:
    """Role, file, flags and loaded models, as far as they are known; True where there is something to move
    elsewhere first. Raises CommandError for an unknown name."""
    machine = desk.files().find(name)
    if machine is None:
        if desk.book.table is None or not desk.book.table.of_name(name):
            raise unknown_name(name, desk.files(), folders.machines_dir)
        diagnostics.say(
            f"{clean(name)}: no file declares it any more; what was decided about it is forgotten"
        )
        return False
    file = f"{machine.config_file} ({'is deleted too' if is_file_deleted else 'stays'})"
    loaded, copies = _loaded(folders, name)
    flags = _flags(folders, name)
    lines = [
        f"{clean(name)}  {clean(machine.hostname)}",
        f"  role    {clean(machine.role)}",
        f"  loaded  {loaded}",
        *([f"  flags   {clean(flags)}"] if flags else []),
        f"  file    {clean(file)}",
    ]
    diagnostics.say(*lines, "Nothing is unloaded or changed on the machine.")
    if copies:
        what = "the copy there is" if copies == 1 else f"the {copies} copies there are"
        step = f"fleettui drain start {clean(name)} --reason removal"
        diagnostics.say(f"Nobody is sent to it any more, so {what} of no use; to move first: {step}")
    return copies > 0


def _loaded(folders: Folders, name: str) -> tuple[str, int]:
    """Models as the last stored snapshot has them, with its age, and how many."""
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return "not known: nothing was stored yet", 0
        with store:
            stored = load_for_routing(store, folders.machines_dir)
    except StoreError as error:
        return f"not known: {error}", 0
    found = stored.fleet.find(name) if stored is not None else None
    if stored is None or found is None or found.last_seen is None:
        return "not known: the machine was not polled yet", 0
    age = duration(found.age_s(time.time()) or 0.0)
    models = ", ".join(clean(copy.name) for copy in found.loaded) or "nothing"
    return f"{models} ({age} ago)", len(found.loaded)


def _flags(folders: Folders, name: str) -> str:
    """`drained "PSU swap" by mia since 12:03`: it is forgotten with the machine."""
    book = FlagBook(folders.state_dir, folders.machines_dir)
    book.refresh()
    now = time.time()
    offset_s = time.localtime(now).tm_gmtoff
    maintenance, drain = book.maintenance.get(name), book.drains.get(name)
    words = [] if maintenance is None else [maintenance_words(maintenance, now, offset_s)]
    words += [] if drain is None else [drain_words(drain, now, offset_s)]
    book.close()
    return "; ".join(words)


def _drain_first(arguments: Namespace, name: str) -> None:
    """As `drain start NAME`; raises TrustError where the machine is not drained then."""
    from fleettui.cli.drain import drain_command
    from fleettui.cli.grammar import build_parser

    asked = build_parser().parse_args(["drain", "start", "--reason", "removal", "--", name])
    known = {key: value for key, value in vars(arguments).items() if key in _FOLDER_KEYS}
    if drain_command(Namespace(**{**vars(asked), **known})) != EXIT_OK:
        raise TrustError("not_shown", name, f"{name}: not drained, so not removed either")


_FOLDER_KEYS = ("machines", "catalog", "state_dir", "readonly", "interval", "no_color")


def _confirm(name: str, *, can_drain: bool = False) -> str:
    """The typed name, or `drain` where that is offered. Raises TrustError for anything else."""
    if not diagnostics.can_ask():
        raise MustAsk(
            "not_shown",
            name,
            f"{name}: remove asks for the typed name on a terminal; here is none: add --yes",
        )
    offers = can_drain and name != _DRAIN
    first = f"; to drain it first, type {_DRAIN}" if offers else ""
    answer = diagnostics.ask(f"To remove it, type its name ({clean(name)}){first}: ")
    if answer == name or (offers and answer == _DRAIN):
        return answer
    raise TrustError("not_shown", name, f"{name}: not removed")
