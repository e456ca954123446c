"""`fleettui drain start`: shows what would be done, asks, and works on it in the foreground."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace

from fleettui.cli import diagnostics, output
from fleettui.cli.drain_desk import (
    command_error,
    finish,
    follow,
    opened_desk,
    read_until,
    tell_changes,
    wait_for_answers,
)
from fleettui.cli.drain_talk import DrainTalk, check_machines, refuse_readonly
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_NO_TELEMETRY, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.serving import run_serving
from fleettui.fleet.drain.desk import DrainDesk, DrainError
from fleettui.model.drain import DrainOptions, DrainPlan, PlannedCopy
from fleettui.model.record import replace
from fleettui.view.cells import Cells
from fleettui.view.drain_document import preview_document
from fleettui.view.drain_text import consequence_text, preview_lines, refused_text, staying_lines
from fleettui.view.text import clean


def start_command(arguments: Namespace) -> int:
    """Preview, ask, start, tell how it goes."""
    folders = resolve_folders(arguments)
    names = tuple(dict.fromkeys(arguments.names))
    if not arguments.dry_run:
        refuse_readonly(folders, "drain start")
        arguments.reason = (arguments.reason or "").strip() or _known_reason(folders, names)
        if not arguments.reason:
            raise CommandError("a drain wants its reason: add --reason TEXT, or look first: --dry-run", _SEE)
        if not arguments.yes and not diagnostics.can_ask():
            raise CommandError(
                "drain start asks for the machine's name on a terminal; here is none: add --yes",
                "what it would do: --dry-run",
            )
    check_machines((*names, *arguments.to), folders)
    for name in arguments.to:
        if name in names:
            raise CommandError(f"--to {clean(name)}: a machine that is emptied is no target", _SEE)
    until = read_until(arguments.until, time.time())
    try:
        return run_serving(_start(folders, names, arguments, until))
    except DrainError as error:
        raise command_error(error, folders, "nothing was started") from None


def _known_reason(folders: Folders, names: tuple[str, ...]) -> str:
    """Of drains that are on already: going on with one needs no new reason. Empty where they differ."""
    from fleettui.cli.drain_status import load_statuses

    reasons = {"" if status is None else status.drain.reason for _, status in load_statuses(folders, names)}
    return reasons.pop() if len(reasons) == 1 else ""


_SEE = "see: fleettui drain start --help"


def options_of(arguments: Namespace) -> DrainOptions:
    """What the command line allows."""
    return DrainOptions(
        allow_pull=arguments.allow_pull,
        accept_degraded=arguments.accept_degraded,
        keeps_context=arguments.keep_context,
        idle_wait_s=arguments.idle_wait,
        deadline_s=arguments.deadline,
        probes=arguments.probe,
        forced=tuple(dict.fromkeys(arguments.forced)),
        targets=tuple(dict.fromkeys(arguments.to)),
        serial=arguments.serial,
        skips=tuple(dict.fromkeys(arguments.skip)),
    )


async def _start(folders: Folders, names: tuple[str, ...], arguments: Namespace, until: float | None) -> int:
    options, talk = options_of(arguments), DrainTalk(folders)
    async with opened_desk(folders, "drain") as (service, desk):
        await wait_for_answers(service)
        plans = await desk.preview(names, options)
        now = time.time()
        blind = [plan for plan in plans if plan.problem]
        if arguments.dry_run:
            code = EXIT_NO_TELEMETRY if blind else EXIT_OK
            if arguments.json:
                output.write_document(
                    preview_document(plans, options, now, reason=arguments.reason, exit_code=code)
                )
            else:
                talk.print_lines(_preview(plans, arguments, now, output.terminal_width(), talk))
                _say_hints(plans, options)
            return code
        if not arguments.json or not arguments.yes:
            talk.say_lines(_preview(plans, arguments, now, diagnostics.terminal_width(), talk))
        try:
            _check(plans, options, blind)
        except CommandError as error:
            if arguments.json:
                document = preview_document(
                    plans, options, now, reason=arguments.reason, exit_code=error.exit_code
                )
                output.write_document({**document, "errors": error.document(None)["errors"]})
            raise
        _say_staying(plans, options)
        if not arguments.yes:
            await _ask(names, plans, options)
        await desk.start(names, arguments.reason, options, until=until)
        return await _work(desk, names, arguments, talk)


def _preview(
    plans: tuple[DrainPlan, ...], arguments: Namespace, now: float, width: int | None, talk: DrainTalk
) -> list[Cells]:
    lines: list[Cells] = []
    for number, plan in enumerate(plans):
        lines += [()] if number else []
        lines += preview_lines(plan, arguments.reason or "", now, width, talk.glyphs)
    return lines


def _check(plans: tuple[DrainPlan, ...], options: DrainOptions, blind: list[DrainPlan]) -> None:
    """Raises CommandError where the operator's word is missing, or nobody knows what to do."""
    if blind:
        raise CommandError(
            "; ".join(f"{clean(plan.machine)}: {clean(plan.problem)}" for plan in blind),
            "nothing was started: what is loaded there is not known",
            "to keep it out of routing meanwhile: fleettui maintenance on "
            + " ".join(clean(plan.machine) for plan in blind),
            exit_code=EXIT_NO_TELEMETRY,
        )
    refused = [line for plan in plans for line in plan.refused(options)]
    if refused:
        raise CommandError(
            f"refused: {refused_text(refused)}; nothing was started",
            f"to go on all the same: {_wanted(refused, options)}",
            exit_code=EXIT_NEGATIVE,
        )


def _say_hints(plans: tuple[DrainPlan, ...], options: DrainOptions) -> None:
    """What `drain start` would want beside what was given."""
    refused = [line for plan in plans for line in plan.refused(options)]
    if refused:
        diagnostics.say(f"start would want {_wanted(refused, options)}")
    _say_staying(plans, options)


def _wanted(refused: list[PlannedCopy], options: DrainOptions) -> str:
    """What gives the word for these lines, and what may spare one of them."""
    classes = dict.fromkeys(line.drain_class.replace("_", "-") for line in refused)
    words = " ".join(f"--force-class {name}" for name in classes)
    may_fetch = not options.allow_pull and any(
        line.copy.engine == "ollama" and any("not_installed" in machine.codes for machine in line.rejected)
        for line in refused
    )
    return f"{words}; or --allow-pull, so that a target may fetch the files it lacks" if may_fetch else words


def _say_staying(plans: tuple[DrainPlan, ...], options: DrainOptions) -> None:
    """Copies that are left where they are, and which option moves them."""
    lines = [line for plan in plans for line in staying_lines(plan, options)]
    names = [line.copy for plan in plans for line in plan.copies]
    for name in options.skips:
        if not any(replace(options, skips=(name,)).skips_copy(copy) for copy in names):
            diagnostics.say(f"note: --skip {clean(name)}: no copy there has that name")
    for drain_class, option in (("degraded", "--accept-degraded"), ("pull", "--allow-pull")):
        left = [
            line for line in lines if line.drain_class == drain_class and not options.skips_copy(line.copy)
        ]
        if left:
            diagnostics.say(f"without {option} left where it is: {refused_text(left)}")
    skipped = [line for line in lines if options.skips_copy(line.copy)]
    if skipped:
        diagnostics.say(f"left where it is by --skip: {refused_text(skipped)}")
    if lines:
        diagnostics.say("so the drain ends blocked, until they are gone")


async def _ask(names: tuple[str, ...], plans: tuple[DrainPlan, ...], options: DrainOptions) -> None:
    """The typed names, or CommandError."""
    diagnostics.say("", *(f"{consequence_text(plan, options)}." for plan in plans))
    wanted = " ".join(names)
    what = "type its name" if len(names) == 1 else "type their names"
    answer = await diagnostics.ask_in_loop(f"To start, {what} ({clean(wanted)}): ")
    if answer.split() != list(names):
        raise CommandError("not started: that was not the name", exit_code=EXIT_NEGATIVE)


async def _work(desk: DrainDesk, names: tuple[str, ...], arguments: Namespace, talk: DrainTalk) -> int:
    """Until each of these drains has ended; Ctrl+C leaves them to whoever goes on."""
    told = clean(" ".join(names))
    leave = desk.subscribe(talk.note)
    follower = asyncio.create_task(follow(desk, names, talk))
    try:
        ended = [await desk.wait(name) for name in names]
    except asyncio.CancelledError:
        diagnostics.say(
            f"{told}: left as it stands; a load under way is given up, nothing is lost by that",
            f"it takes no requests; a dashboard goes on with it, or: fleettui drain status {told} --follow",
            f"to end it: fleettui drain cancel {told}",
        )
        raise
    finally:
        follower.cancel()
        leave()
    await tell_changes(desk, names, talk)
    return finish(names, ended, is_json=arguments.json)
