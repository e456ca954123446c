"""`fleettui inventory collect`: what machines are made of, as YAML, kept and dated."""

from __future__ import annotations

import asyncio
import socket
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from fleettui.cli import diagnostics, output
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_NO_TELEMETRY, EXIT_OK, EXIT_USAGE, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.names import check_names, folder_error
from fleettui.cli.polling import NEXT_STEPS
from fleettui.config.inventory_file import Inventory, inventory_text, load_inventory, write_inventory
from fleettui.config.machine_folder import load_machines
from fleettui.decide.profile_merge import merge_profile, with_keys_of, with_machine_keys
from fleettui.fleet.inventory import Collected, collect_profiles
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.machine import Machine, SshSettings
from fleettui.model.profile import Profile
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.store.database import Store, StoreError
from fleettui.store.profiles import load_profiles, save_profiles
from fleettui.view.problems import problem_lines
from fleettui.view.profile_text import collected_line, date_text, inventory_document
from fleettui.view.text import clean
from fleettui.view.units import count


def inventory_command(arguments: Namespace) -> int:
    """Collect, merge with what was known, store, print or write; the exit code is the verdict."""
    if arguments.local and arguments.names:
        raise CommandError("--local is this computer alone; leave the names out", exit_code=EXIT_USAGE)
    folders = resolve_folders(arguments)
    machines = [_this_computer(folders)] if arguments.local else _declared(arguments.names, folders)
    before = _read_output(arguments.output)
    stored, complaints = _load_stored(folders)
    collected = asyncio.run(_collect(machines, folders, arguments.deadline))
    profiles, kept, warnings = _merge(machines, collected, stored, before)
    not_stored = _store(collected, stored, before, folders)
    complaints += not_stored
    exit_code = _exit_code(collected)
    diagnostics.say_all(clean(line) for line in (*warnings, *complaints))
    inventory = _place(profiles, before)
    if arguments.output is not None and profiles:
        _write(arguments.output, inventory, is_stored=not not_stored)
    if arguments.json:
        output.write_document(
            inventory_document(profiles, collected, kept, [*warnings, *complaints], exit_code)
        )
    elif arguments.output is None and profiles:
        output.write_text(inventory_text(inventory))
    return exit_code


def _declared(names: Sequence[str], folders: Folders) -> list[Machine]:
    """Machines of the folder. Raises CommandError where there are none, or a name is unknown."""
    files = load_machines(folders.machines_dir)
    unreadable = folder_error(files.problems, folders.machines_dir)
    if unreadable is not None:
        raise unreadable
    check_names(names, files, folders.machines_dir)
    diagnostics.say_all(problem_lines(files.problems))
    if not files.machines:
        raise CommandError(f"no machine file in {folders.machines_dir}", *NEXT_STEPS)
    return [machine for machine in files.machines if not names or machine.name in names]


def _this_computer(folders: Folders) -> Machine:
    """The machine that a file declares with `ssh: local`; else one that is named after this computer."""
    found = next((item for item in load_machines(folders.machines_dir).machines if item.ssh.is_local), None)
    name = socket.gethostname().partition(".")[0] or "localhost"
    return found or Machine(name, "", "localhost", ssh=SshSettings(is_local=True))


def _read_output(path: str | None) -> Inventory | None:
    """What the file of `-o` says already. Raises CommandError where it is wrong; nothing is asked then."""
    if path is None:
        return None
    if not Path(path).absolute().parent.is_dir():
        raise CommandError(f"{path}: its folder does not exist; create it", exit_code=EXIT_USAGE)
    if (
        Path(path).exists() and not Path(path).is_file()
    ):  # one that waits for a writer is never read to its end
        raise CommandError(
            f"{path} is no ordinary file; name another, or leave -o out to print", exit_code=EXIT_USAGE
        )
    inventory, problems = load_inventory(path)
    if problems:
        raise CommandError(
            f"{path} is no sound inventory, and nothing of it may be lost",
            *problem_lines(problems),
            exit_code=EXIT_USAGE,
            problems=problems,
        )
    return inventory


def _load_stored(folders: Folders) -> tuple[dict[str, Profile], list[str]]:
    """The latest profiles that were kept, and why they could not be read."""
    try:
        store = Store.open_readonly(folders.state_dir)
        if store is None:
            return {}, []
        with store:
            return load_profiles(store, folders.machines_dir), []
    except StoreError as error:
        return {}, [f"earlier profiles cannot be read: {error}"]


async def _collect(machines: Sequence[Machine], folders: Folders, deadline_s: float) -> tuple[Collected, ...]:
    connector = Connector(ConnectorSettings.from_environment())
    gate = TrustGate(TrustBook(folders.state_dir, folders.machines_dir), connector, time.time)
    await gate.load()
    done = 0

    def tell(item: Collected) -> None:
        nonlocal done
        done += 1
        diagnostics.say(f"[{done}/{len(machines)}] {clean(collected_line(item))}")

    collected = await collect_profiles(machines, connector, gate.link_for, tell, deadline_s)
    diagnostics.say_all(problem_lines(connector.problems()))
    diagnostics.say_all([gate.book.error] if gate.book.error is not None else [])
    return collected


def _merge(
    machines: Sequence[Machine],
    collected: Sequence[Collected],
    stored: dict[str, Profile],
    before: Inventory | None,
) -> tuple[list[Profile], dict[str, Profile], list[str]]:
    """Profiles to hand out, those of them that are old, and what is worth a word."""
    profiles: list[Profile] = []
    kept: dict[str, Profile] = {}
    warnings: list[str] = []
    for machine, item in zip(machines, collected, strict=True):
        own = None if before is None else before.find(machine.name)
        old = own or stored.get(machine.name)
        if item.profile is not None:
            merged = merge_profile(old, item.profile, item.gaps)
            profile = merged.profile
            warnings += [f"{machine.name}: {text}" for text in merged.warnings]
        elif old is not None:
            profile = kept[machine.name] = old
            warnings.append(f"{machine.name}: its profile of {date_text(old.collected_at)} stands for it")
        else:
            continue
        profiles.append(profile if own is not None else with_machine_keys(profile, machine))
    return profiles, kept, warnings


def _store(
    collected: Sequence[Collected], stored: dict[str, Profile], before: Inventory | None, folders: Folders
) -> list[str]:
    """Keep what was measured now, with parts that could not be read as they were; says what went wrong.

    The operator's keys are those of the file, where it has the machine.
    """
    merged = []
    for item in collected:
        if item.profile is not None:
            profile = merge_profile(stored.get(item.name), item.profile, item.gaps).profile
            own = None if before is None else before.find(item.name)
            merged.append(profile if own is None else with_keys_of(profile, own))
    if not merged:
        return []
    try:
        with Store.open(folders.state_dir) as store:
            save_profiles(store, folders.machines_dir, merged)
    except StoreError as error:
        return [f"the profiles are not kept: {error}"]
    return []


def _place(profiles: Sequence[Profile], before: Inventory | None) -> Inventory:
    """The profiles in the place of those that the file had; new ones behind."""
    if before is None:
        return Inventory(tuple(profiles), len(profiles) != 1)
    fresh = {profile.name: profile for profile in profiles}
    placed = [fresh.pop(profile.name, profile) for profile in before.profiles]
    placed += fresh.values()
    return Inventory(tuple(placed), before.is_list or len(placed) != 1, before.keys)


def _write(path: str, inventory: Inventory, *, is_stored: bool) -> None:
    try:
        write_inventory(path, inventory)
    except OSError as error:
        kept = "kept in the state database" if is_stored else "kept nowhere"
        raise CommandError(
            f"{path}: cannot be written ({error.strerror}); the profiles are {kept}",
            "correct the rights of its folder and run it again",
        ) from None
    diagnostics.say(f"{path}: {count(len(inventory.profiles), 'machine')}")


def _exit_code(collected: Sequence[Collected]) -> int:
    if all(item.profile is None for item in collected):
        return EXIT_NO_TELEMETRY
    is_whole = all(item.profile is not None and not item.gaps for item in collected)
    return EXIT_OK if is_whole else EXIT_NEGATIVE
