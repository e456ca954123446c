"""`fleettui machines approve|reject`."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from fleettui.cli import diagnostics
from fleettui.cli.errors import CommandError
from fleettui.cli.names import check_names
from fleettui.cli.trust import MustAsk, changing_folders, finish, make_desk, run
from fleettui.decide.trust import rejection_text
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import ShownKey, TrustError, TrustResult
from fleettui.model.approval import is_fingerprint, machines_command
from fleettui.view.text import clean
from fleettui.view.trust_list import compare_lines, key_lines

Outcome = TrustResult | TrustError


def approve_command(arguments: Namespace) -> int:
    """Approve the named machines' host keys, after asking or as the options say."""
    folders = changing_folders(arguments)
    names = tuple(dict.fromkeys(arguments.names))
    fingerprint = _fingerprint(arguments.fingerprint, names)
    desk = make_desk(folders)
    check_names(names, desk.files(), folders.machines_dir)
    if fingerprint is not None or arguments.yes:
        outcomes = run(desk, _approve_all(desk, names, fingerprint))
    else:
        outcomes = run(desk, _ask_for_all(desk, names))
    return _finish(arguments, outcomes)


def reject_command(arguments: Namespace) -> int:
    """Reject the named machines."""
    folders = changing_folders(arguments)
    names = tuple(dict.fromkeys(arguments.names))
    desk = make_desk(folders)
    check_names(names, desk.files(), folders.machines_dir)
    return _finish(arguments, run(desk, _reject_all(desk, names, is_sure=arguments.yes)))


def _finish(arguments: Namespace, outcomes: list[Outcome]) -> int:
    results = [item for item in outcomes if isinstance(item, TrustResult)]
    return finish(arguments, results, [item for item in outcomes if isinstance(item, TrustError)])


def _fingerprint(text: str | None, names: tuple[str, ...]) -> str | None:
    if text is None:
        return None
    if len(names) > 1:
        raise CommandError("--fingerprint belongs to one machine: name only that one")
    fingerprint = text.strip().rstrip("=")
    if not is_fingerprint(fingerprint):
        raise CommandError(
            f"--fingerprint {text[:80]!r} is no whole fingerprint",
            "it is SHA256: and 43 characters, as `ssh-keygen -lf` prints it for a key file on the machine",
        )
    return fingerprint


async def _approve_all(desk: TrustDesk, names: tuple[str, ...], fingerprint: str | None) -> list[Outcome]:
    async def approve(name: str) -> Outcome:
        try:
            return await desk.approve(name, fingerprint)
        except TrustError as error:
            return error

    return list(await asyncio.gather(*(approve(name) for name in names)))


async def _ask_for_all(desk: TrustDesk, names: tuple[str, ...]) -> list[Outcome]:
    """Read all keys side by side, then ask for one after the other."""

    async def read(name: str) -> ShownKey | Outcome:
        try:
            if desk.machine(name).ssh.is_local:
                return await desk.approve(name)
            return await desk.read_key(name)
        except TrustError as error:
            return error

    shown = await asyncio.gather(*(read(name) for name in names))
    return [await _ask_for(desk, item) if isinstance(item, ShownKey) else item for item in shown]


async def _ask_for(desk: TrustDesk, shown: ShownKey) -> Outcome:
    """Show one key and do as the operator says."""
    name, offer, key = shown.machine.name, shown.offer, shown.offer.fingerprint
    is_changed = bool(offer.expected) and not shown.is_known
    if not shown.is_known or (shown.decision is not None and shown.decision.kind != "pinned"):
        _show(shown, is_changed=is_changed)
    try:
        if not shown.is_known:
            _confirm(name, key, is_changed=is_changed)
        return await desk.approve(name, shown=shown)
    except TrustError as error:
        return error


def _show(shown: ShownKey, *, is_changed: bool) -> None:
    name = clean(shown.machine.name)
    head = f"{name}  {clean(shown.address)}" + (
        "  HOST KEY CHANGED: find out why first" if is_changed else ""
    )
    diagnostics.say(head, *key_lines(shown.offer))
    if shown.decision is not None and shown.decision.kind == "rejected":
        diagnostics.say(clean(rejection_text(shown.decision)))
    diagnostics.say_all(compare_lines(name))


def _confirm(name: str, fingerprint: str, *, is_changed: bool) -> None:
    """Ask the operator. Raises TrustError unless the answer is yes."""
    if not diagnostics.can_ask():
        command = machines_command("approve", name, "--fingerprint", fingerprint)
        text = (
            f"{name}: approve asks on a terminal, and here is none; when you have compared the key: {command}"
        )
        raise MustAsk("not_shown", name, text)
    if is_changed:
        answer = diagnostics.ask(f"To approve the new key, type the machine's name ({clean(name)}): ")
        is_yes = answer == name
    else:
        is_yes = diagnostics.ask(f"Approve this key for {clean(name)}? [y/N] ").lower() in {"y", "yes"}
    if not is_yes:
        raise TrustError("not_shown", name, f"{name}: not approved")


async def _reject_all(desk: TrustDesk, names: tuple[str, ...], *, is_sure: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for name in names:
        try:
            if not is_sure:
                await _confirm_rejection(desk, name)
            outcomes.append(await desk.reject(name))
        except TrustError as error:
            outcomes.append(error)
    return outcomes


async def _confirm_rejection(desk: TrustDesk, name: str) -> None:
    """Only an approved machine is worth a question: its polling ends."""
    if not await desk.is_approved(name):
        return
    if not diagnostics.can_ask():
        text = f"{name}: is approved, and reject asks on a terminal; here is none: add --yes"
        raise MustAsk("not_shown", name, text)
    question = f"{clean(name)} is approved. Stop asking it and reject its key? [y/N] "
    if diagnostics.ask(question).lower() not in {"y", "yes"}:
        raise TrustError("not_shown", name, f"{name}: not rejected")
