"""`fleettui machines remove`."""

from __future__ import annotations

import time
from argparse import Namespace

from fleettui.cli import diagnostics
from fleettui.cli.folders import Folders
from fleettui.cli.names import unknown_name
from fleettui.cli.trust import MustAsk, changing_folders, finish, make_desk, run
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import TrustError
from fleettui.store.database import Store, StoreError
from fleettui.store.snapshots import load_for_routing
from fleettui.view.text import clean
from fleettui.view.units import duration


def remove_command(arguments: Namespace) -> int:
    """Show what belongs to the machine, ask for its name, forget it."""
    folders = changing_folders(arguments)
    desk = make_desk(folders)
    name = arguments.name
    try:
        desk.book.refresh()
        _show(folders, desk, name, is_file_deleted=arguments.delete_file)
        if not arguments.yes:
            _confirm(name)
        result = run(desk, desk.remove(name, is_file_deleted=arguments.delete_file))
    except TrustError as error:
        return finish(arguments, [], [error])
    return finish(arguments, [result], [])


def _show(folders: Folders, desk: TrustDesk, name: str, *, is_file_deleted: bool) -> None:
    """Role, file and loaded models, as far as they are known. Raises CommandError for an unknown name."""
    machine = desk.files().find(name)
    if machine is None:
        if desk.book.table is None or not desk.book.table.of_name(name):
            raise unknown_name(name, desk.files(), folders.machines_dir)
        diagnostics.say(
            f"{clean(name)}: no file declares it any more; what was decided about it is forgotten"
        )
        return
    file = f"{machine.config_file} ({'is deleted too' if is_file_deleted else 'stays'})"
    lines = [
        f"{clean(name)}  {clean(machine.hostname)}",
        f"  role    {clean(machine.role)}",
        f"  loaded  {_loaded(folders, name)}",
        f"  file    {clean(file)}",
    ]
    diagnostics.say(*lines, "Nothing is unloaded or changed on the machine.")


def _loaded(folders: Folders, name: str) -> str:
    """Models as the last stored snapshot has them, with its age."""
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return "not known: nothing was stored yet"
        with store:
            stored = load_for_routing(store, folders.machines_dir)
    except StoreError as error:
        return f"not known: {error}"
    found = stored.fleet.find(name) if stored is not None else None
    if stored is None or found is None or found.last_seen is None:
        return "not known: the machine was not polled yet"
    age = duration(found.age_s(time.time()) or 0.0)
    models = ", ".join(clean(copy.name) for copy in found.loaded) or "nothing"
    return f"{models} ({age} ago)"


def _confirm(name: str) -> None:
    if not diagnostics.can_ask():
        raise MustAsk(
            "not_shown",
            name,
            f"{name}: remove asks for the typed name on a terminal; here is none: add --yes",
        )
    if diagnostics.ask(f"To remove it, type its name ({clean(name)}): ") != name:
        raise TrustError("not_shown", name, f"{name}: not removed")
