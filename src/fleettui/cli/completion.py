"""Completing a command line: called by the shell function that `--print-completion` prints.

The shell starts `fleettui` itself with `_ARGCOMPLETE` set; what can be completed comes from the grammar,
names of machines from the `name:` lines of their files (no YAML is parsed), models and tags from the last
snapshot, models from the catalog too. Nothing is asked of a machine.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from argcomplete.completers import DirectoriesCompleter, FilesCompleter, SuppressCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

from fleettui.cli import output
from fleettui.cli.errors import EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.model.catalog import EMPTY_CATALOG, Catalog, catalog_names
from fleettui.model.names import canonical_name
from fleettui.model.readings import InstalledModel, LoadedModel
from fleettui.model.snapshot import FleetSnapshot

MAX_FILES = 1000
HEAD_BYTES = 4096
_NAME = re.compile(rb"""^name:[ \t]*(["']?)([^\r\n"'#]+?)\1[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_ROUTE_OPTION = re.compile(r"(?<=\s)--route(?=[\s=])=?")

Completer = Callable[..., Iterable[str]]


def print_code(shell: str) -> str:
    """What a shell has to read to complete `fleettui`: bash, zsh or fish."""
    return str(shellcode(["fleettui"], shell=shell))


def completion_command(arguments: argparse.Namespace) -> int:
    """`fleettui --print-completion SHELL`."""
    output.write_text(print_code(arguments.print_completion).rstrip("\n") + "\n")
    return EXIT_OK


def complete() -> None:
    """Answer the shell and end the process."""
    from fleettui.cli.grammar import build_parser

    _make_route_a_command()
    parser = build_parser()
    parser.add_argument("--route", metavar="MODEL", help="same as `fleettui route MODEL`")
    _attach(parser)
    CompletionFinder()(
        parser,
        always_complete_options=False,
        default_completer=SuppressCompleter(),  # else names of files
    )


def _make_route_a_command() -> None:
    """`fleettui --route MODEL …` as `fleettui route MODEL …`, the cursor kept at its word."""
    line = os.environ.get("COMP_LINE", "")
    try:
        point = int(os.environ.get("COMP_POINT", ""))
    except ValueError:
        return
    before = line.encode()[:point].decode(errors="ignore")  # bytes, as argcomplete reads it
    found = _ROUTE_OPTION.search(before)
    if found is None:
        return
    program = re.match(r"\s*\S+", before)
    if program is None or " -- " in before[: found.start()]:
        return
    start, middle, rest = (
        before[: program.end()],
        before[program.end() : found.start()],
        before[found.end() :],
    )
    changed = f"{start} route{middle.rstrip()} {rest.lstrip()}"
    os.environ["COMP_LINE"] = changed
    os.environ["COMP_POINT"] = str(len(changed.encode()))


def _attach(parser: argparse.ArgumentParser) -> None:
    """Each argument gets who completes it, by what its help calls it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _attach(inner)
            continue
        word = action.metavar if isinstance(action.metavar, str) else ""
        if word in _COMPLETERS and action.choices is None and action.nargs != 0:
            action.completer = _COMPLETERS[word]  # type: ignore[attr-defined]


def machine_names(machines_dir: str) -> list[str]:
    """Names of machines by the `name:` lines of their files, else the files' own names."""
    found: list[str] = []
    try:
        paths = sorted(path for path in Path(machines_dir).iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError:
        return []
    for path in paths[:MAX_FILES]:
        try:
            with path.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
        except OSError:
            continue
        line = _NAME.search(head)
        name = line[2].decode(errors="replace").strip() if line else path.stem
        if name.isprintable() and not path.name.startswith("."):
            found.append(name)
    return found


def _folders(arguments: argparse.Namespace) -> Folders | None:
    try:
        return resolve_folders(arguments)
    except CommandError:
        return None


def _names(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    folders = _folders(parsed_args)
    given = getattr(parsed_args, "names", None)
    known = [] if folders is None else machine_names(folders.machines_dir)
    return [name for name in known if name not in (given if isinstance(given, list) else ())]


def _stored(arguments: argparse.Namespace) -> FleetSnapshot | None:
    """The last snapshot, however old: models and tags seldom change."""
    from fleettui.store.database import Store, StoreError
    from fleettui.store.snapshots import load_for_routing

    folders = _folders(arguments)
    if folders is None:
        return None
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return None
        try:
            stored = load_for_routing(store, folders.machines_dir)
        finally:
            store.close()
    except StoreError:
        return None
    return None if stored is None else stored.fleet


def _models(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Every name by which a model may be asked for, each once."""
    fleet = _stored(parsed_args)
    names: list[str] = []
    for machine in () if fleet is None else fleet.machines:
        listed: list[LoadedModel | InstalledModel] = [*machine.loaded, *machine.installed]
        for model in listed:
            names.append(model.name)
            names += [name for further in model.names or () for name in further]
        names += machine.machine.models
    names += catalog_names(_catalog(parsed_args, fleet))
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(canonical_name(name), name)
    return sorted(name for name in spelled.values() if name.isprintable())


def _catalog(arguments: argparse.Namespace, fleet: FleetSnapshot | None) -> Catalog:
    """The one in the folder, else the stored one; YAML is read only where that folder's is not stored."""
    stored = EMPTY_CATALOG if fleet is None else fleet.catalog
    folders = _folders(arguments)
    if folders is None or folders.catalog_dir is None:
        return stored
    path = Path(folders.catalog_dir, "models.yaml")
    if stored.file == str(path) or not path.exists():
        return stored
    from fleettui.config.catalog_folder import load_catalog_files

    own = load_catalog_files(folders.catalog_dir).catalog
    return own if own.file else stored


def _tags(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    fleet = _stored(parsed_args)
    return (
        [] if fleet is None else sorted({tag for machine in fleet.machines for tag in machine.machine.tags})
    )


def _leases(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Those that hold now."""
    from fleettui.store.database import Store, StoreError
    from fleettui.store.leases import load_leases

    folders = _folders(parsed_args)
    if folders is None:
        return []
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return []
        with store:
            return [lease.id for lease in load_leases(store, folders.machines_dir, time.time())]
    except StoreError:
        return []


def _gpus(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """`ada:0`, as the last snapshot has them."""
    fleet = _stored(parsed_args)
    machines = () if fleet is None else fleet.machines
    return [
        f"{machine.name}:{card.index}"
        for machine in machines
        if machine.gpu is not None
        for card in machine.gpu.cards
    ]


def _units(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    return ["kernel", "ollama", "nvidia-persistenced"]


def _classes(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from fleettui.model.drain import FORCED_CLASSES

    return [name.replace("_", "-") for name in FORCED_CLASSES]


_COMPLETERS: dict[str, Completer] = {
    "NAME": _names,
    "MACHINE": _names,
    "M": _names,
    "MACHINE:IDX": _gpus,
    "MODEL": _models,
    "T": _tags,
    "U": _units,
    "LEASE": _leases,
    "CLASS": _classes,
    "DIR": DirectoriesCompleter(),
    "FILE": FilesCompleter(),
}
"""By metavar."""
