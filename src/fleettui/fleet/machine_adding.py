"""`machines add`: creates machine files and approves keys given beforehand. Contacts nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleettui.config.machine_writing import (
    DEFAULT_ROLE,
    MachineFileError,
    NewMachine,
    create_machine_files,
    default_name,
    parse_target,
    path_for,
)
from fleettui.decide.trust import clear_offer
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import TrustError, TrustResult
from fleettui.model.approval import is_fingerprint, machines_command
from fleettui.model.machine import Machine
from fleettui.model.record import dataclass, replace
from fleettui.model.trust import TrustDecision

if TYPE_CHECKING:
    from fleettui.store.trust import Change, Key


LineProblem = tuple[int | None, str]
"""Line of a list, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class AddRequest:
    """One machine to add."""

    target: str
    """`[USER@]HOST[:PORT]`, the port is SSH's."""
    name: str | None = None
    role: str | None = None
    tags: tuple[str, ...] = ()
    fingerprint: str | None = None
    """`SHA256:…` that its host key will have: approved beforehand."""
    line: int | None = None
    """Where it stands in a list of machines."""


class AddError(Exception):
    """Nothing was added; `texts` has every reason in the order of the lines."""

    def __init__(self, problems: Sequence[LineProblem]) -> None:
        in_order = sorted(problems, key=lambda problem: problem[0] or 0)
        self.texts = tuple(text if line is None else f"line {line}: {text}" for line, text in in_order)
        super().__init__("; ".join(self.texts))


@dataclass(frozen=True, slots=True)
class _Plan:
    machine: Machine
    """As declared, or as its file will declare it."""
    address: str
    new: NewMachine | None
    """None: it is declared already."""
    fingerprint: str | None


async def add_machines(
    desk: TrustDesk, requests: Sequence[AddRequest], how: str = "add", problems: Sequence[LineProblem] = ()
) -> list[TrustResult]:
    """Add all of them or none; one that is known already is no error. Raises AddError, TrustError.

    `problems`: what was wrong with other lines, so that all errors are told at once.
    """
    await desk.refresh("")
    plans, errors = _plan_all(desk, requests)
    if errors or problems:
        raise AddError([*problems, *errors])
    changes = _changes(desk, plans, how)
    table = desk.book.table
    before = {key: table.find(*key) if table is not None else None for key in changes}
    await desk.change("", changes)
    new = [plan.new for plan in plans if plan.new is not None]
    try:
        await asyncio.to_thread(create_machine_files, desk.book.machines_dir, new)
    except MachineFileError as error:
        await desk.change("", {key: _restore(row) for key, row in before.items()})
        raise TrustError("file", "", str(error)) from None
    return [_result(desk, plan) for plan in plans]


def _plan_all(desk: TrustDesk, requests: Sequence[AddRequest]) -> tuple[list[_Plan], list[LineProblem]]:
    plans: list[_Plan] = []
    errors: list[LineProblem] = []
    names: dict[str, AddRequest] = {}
    places: dict[str, AddRequest] = {}
    declared = desk.files().machines
    known = {
        desk.address_of(machine): machine for machine in reversed(declared) if _has_address(desk, machine)
    }
    for request in requests:
        try:
            plan = _plan(desk, request, known)
            twin = names.get(plan.machine.name) or places.get(plan.address)
            if twin is not None:
                raise ValueError(f"{request.target} is in line {twin.line} already")
        except ValueError as error:
            errors.append((request.line, str(error)))
            continue
        names[plan.machine.name] = places[plan.address] = request
        plans.append(plan)
    return plans, errors


def _plan(desk: TrustDesk, request: AddRequest, known: dict[str, Machine]) -> _Plan:
    """What to do for one request. Raises ValueError with the sentence to print."""
    fingerprint = request.fingerprint
    if fingerprint is not None:
        fingerprint = fingerprint.strip().rstrip("=")
        if not is_fingerprint(fingerprint):
            raise ValueError(
                f"{request.target}: the fingerprint must be SHA256: and 43 characters, as "
                "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints it on the machine"
            )
    new = _new_machine(desk, request)
    drafted, problems = new.read(path_for(desk.book.machines_dir, new.name))
    if drafted is None:
        raise ValueError(f"{request.target}: {problems[0].message}")
    address = _address(desk, drafted)
    same_name = desk.files().find(new.name)
    at_address = known.get(address)
    found = at_address if request.name is None and at_address is not None else same_name
    if found is not None and not (_has_address(desk, found) and desk.address_of(found) == address):
        raise ValueError(
            f"{found.name} is declared in {found.config_file} for another address; edit that file, or choose "
            "another name with --name"
        )
    if found is None and at_address is not None:
        raise ValueError(f"{address} is declared already, as {at_address.name} in {at_address.config_file}")
    if found is not None:
        _check_key(desk, found, address, fingerprint)
        return _Plan(found, address, None, fingerprint)
    _check_key(desk, drafted, address, fingerprint)
    return _Plan(drafted, address, new, fingerprint)


def _new_machine(desk: TrustDesk, request: AddRequest) -> NewMachine:
    user, host, port = parse_target(request.target)
    role = request.role or DEFAULT_ROLE
    new = NewMachine(request.name or default_name(host), host, role, request.tags, None, user, port)
    drafted, _ = new.read(path_for(desk.book.machines_dir, new.name))
    if drafted is None:
        return new
    dialled = _address(desk, drafted).rpartition(":")[0].strip("[]")
    if dialled.lower() == host.lower():
        return new
    # A name of ~/.ssh/config: what is handed out to clients must mean something to them too.
    return NewMachine(new.name, dialled, role, request.tags, host, user, port)


def _check_key(desk: TrustDesk, machine: Machine, address: str, fingerprint: str | None) -> None:
    """Raises ValueError where another key counts already."""
    if fingerprint is None or desk.book.table is None:
        return
    in_file = machine.ssh.host_key
    if in_file is not None and in_file != fingerprint:
        raise ValueError(f"{machine.name}: {machine.config_file} names another key, {in_file} (ssh.host_key)")
    found = desk.book.table.find(machine.name, address)
    if found is not None and found.kind == "pinned" and found.fingerprint != fingerprint:
        command = machines_command("approve", machine.name, "--fingerprint", fingerprint)
        raise ValueError(
            f"{machine.name} is approved with another key, {found.fingerprint}; to replace it: {command}"
        )


def _changes(desk: TrustDesk, plans: Sequence[_Plan], how: str) -> dict[Key, Change]:
    changes: dict[Key, Change] = {}
    for plan in plans:
        name, address = plan.machine.name, plan.address
        if plan.machine.ssh.host_key is not None or plan.machine.ssh.is_local:
            continue
        if plan.fingerprint is None:
            changes[name, address] = _ask_again
            continue
        pin = TrustDecision(name, address, "pinned", "", plan.fingerprint, desk.clock(), desk.by, how)
        changes[name, address] = _pin(pin)
    return changes


def _pin(pin: TrustDecision) -> Change:
    def change(now: TrustDecision | None) -> TrustDecision:
        is_same = now is not None and (now.kind, now.fingerprint) == ("pinned", pin.fingerprint)
        return replace(now, offer=None) if now is not None and is_same else pin

    return change


def _ask_again(now: TrustDecision | None) -> TrustDecision | None:
    """A key that waited in vain waits anew; one that changed goes on waiting."""
    has_offer = now is not None and now.offer is not None and now.offer.expires_at is not None
    return clear_offer(now) if has_offer else now


def _restore(row: TrustDecision | None) -> Change:
    return lambda _: row


def _result(desk: TrustDesk, plan: _Plan) -> TrustResult:
    name, new = plan.machine.name, plan.new
    file = plan.machine.config_file
    start = f"{name} is added: {file}" if new is not None else f"{name} is declared already in {file}"
    return TrustResult(
        name,
        plan.address,
        "added" if new is not None else "already_known",
        f"{start}; {_what_follows(desk, plan)}",
        fingerprint=plan.fingerprint or "",
        file=file,
    )


def _what_follows(desk: TrustDesk, plan: _Plan) -> str:
    machine, table = plan.machine, desk.book.table
    if machine.ssh.is_local or machine.ssh.host_key is not None:
        return "its file needs no approval"
    found = table.find(machine.name, plan.address) if table is not None else None
    if found is not None and found.kind == "pinned":
        return f"approved with {found.fingerprint}"
    command = machines_command("approve", machine.name)
    if found is not None and found.kind == "rejected":
        return f"it was rejected by {found.decided_by} and stays so until: {command}"
    counts = table is not None and table.counts_known_hosts(machine.name, plan.address)
    if counts and desk.connector.knows_key_of(machine):
        return "its host key stands in known_hosts"
    return f"pending until its host key is approved: {command}"


def _address(desk: TrustDesk, machine: Machine) -> str:
    try:
        return desk.address_of(machine)
    except TrustError as error:
        raise ValueError(error.text) from None


def _has_address(desk: TrustDesk, machine: Machine) -> bool:
    try:
        return desk.address_of(machine) != "local"
    except TrustError:
        return False
