"""Runs the checks: of one machine one after another, of all machines side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fleettui.fleet.doctor.address import ADDRESS_CHECK
from fleettui.fleet.doctor.check import LIMIT_S, Check, Outcome, failed, skipped, split_advice
from fleettui.fleet.doctor.context import Context, LinkFor, NoAnswer
from fleettui.fleet.doctor.engines import FORWARDING_CHECK, engine_checks
from fleettui.fleet.doctor.file import FILE_CHECK, judge_broken_file
from fleettui.fleet.doctor.gpu import GPU_CHECKS
from fleettui.fleet.doctor.login import LOGIN_CHECKS
from fleettui.fleet.doctor.shell import SHELL_CHECK
from fleettui.fleet.doctor.system import SYSTEM_CHECKS
from fleettui.model.doctor import CheckResult, Checkup
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.net.connector import Connector
from fleettui.net.direct_http import DirectHttp
from fleettui.net.errors import LinkError
from fleettui.net.settings import ConnectorSettings

OnChange = Callable[[Checkup], None]
NEEDS = "needs "
"""How the reason of a check begins that was skipped because another failed."""
SPARE_S = 0.3
"""The question's own limit comes first: it says more."""
_TOO_LATE = failed("not done before the deadline", "give it more time: --deadline")


def doctor_settings(settings: ConnectorSettings) -> ConnectorSettings:
    """The connection's own limits, so that each step of a login has three seconds."""
    return replace(
        settings,
        address_s=LIMIT_S,
        connect_s=4 * LIMIT_S,
        authentication_s=LIMIT_S,
        session_s=LIMIT_S,
    )


def plan_checks(machine: Machine) -> tuple[Check, ...]:
    """All checks of a machine, in order."""
    return (
        FILE_CHECK,
        *LOGIN_CHECKS,
        SHELL_CHECK,
        FORWARDING_CHECK,
        *GPU_CHECKS,
        *engine_checks(machine),
        ADDRESS_CHECK,
        *SYSTEM_CHECKS,
    )


async def run_doctor(
    machines: Sequence[Machine],
    connector: Connector,
    link_for: LinkFor,
    on_change: OnChange,
    deadline_s: float | None = None,
) -> tuple[Checkup, ...]:
    """Check all of them at once; `on_change` gets each machine's checkup as it grows.

    At `deadline_s` what is not done yet has failed. Cancelled, it closes every connection at once.
    """
    await connector.warm()
    direct = DirectHttp()
    ends_at = None if deadline_s is None else time.monotonic() + deadline_s
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    _check_machine(
                        Context(machine, link_for, connector.settings.home, direct), on_change, ends_at
                    )
                )
                for machine in machines
            ]
        return tuple(task.result() for task in tasks)
    finally:
        connector.close()
        await direct.close()


async def _check_machine(context: Context, on_change: OnChange, ends_at: float | None) -> Checkup:
    checks = plan_checks(context.machine)
    checkup = Checkup(context.machine.name, tuple(check.title for check in checks))
    on_change(checkup)
    try:
        for check in checks:
            result = await _run_check(check, context, checkup.results, ends_at)
            checkup = Checkup(checkup.name, checkup.planned, (*checkup.results, result))
            on_change(checkup)
    finally:
        await context.close()
    return checkup


async def _run_check(
    check: Check, context: Context, before: Sequence[CheckResult], ends_at: float | None
) -> CheckResult:
    began = time.monotonic()
    outcome = _skip(check, context, before)
    if outcome is None:
        if ends_at is not None and began >= ends_at:
            has_failed = any(result.state == "fail" for result in before)
            outcome = skipped("the deadline is over") if has_failed else _TOO_LATE
        else:
            outcome = await _within_limits(check, context, ends_at)
            if outcome.took_s is None:
                outcome = Outcome(outcome.state, outcome.evidence, outcome.hint, time.monotonic() - began)
    took_ms = None if outcome.took_s is None else round(outcome.took_s * 1000)
    return CheckResult(check.id, check.title, outcome.state, outcome.evidence, outcome.hint, took_ms)


def _skip(check: Check, context: Context, before: Sequence[CheckResult]) -> Outcome | None:
    """Why a check is not run: nothing to check on this machine, or what it needs failed."""
    reason = check.skip_reason(context)
    if reason is not None:
        return skipped(reason)
    blocker = _blocker(check, before)
    if blocker is not None:
        return skipped(f"{NEEDS}{blocker}")
    if context.login.lost is not None and "file" not in check.needs:
        return skipped("the connection was lost")
    return None


def _blocker(check: Check, before: Sequence[CheckResult]) -> str | None:
    """Title of the check that failed first on the way to this one."""
    for result in before:
        if result.id not in check.needs:
            continue
        if result.state == "fail":
            return result.title
        if result.state == "skip" and result.evidence.startswith(NEEDS):
            return result.evidence.removeprefix(NEEDS)
    return None


async def _within_limits(check: Check, context: Context, ends_at: float | None) -> Outcome:
    """The outcome, or what kept it from coming."""
    limit_at = None if check.has_own_limit else time.monotonic() + LIMIT_S + SPARE_S
    until = min((moment for moment in (limit_at, ends_at) if moment is not None), default=None)
    try:
        async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
            return await check.run(context)
    except TimeoutError:
        if ends_at is not None and time.monotonic() >= ends_at:
            return _TOO_LATE
        return failed(f"no answer within {LIMIT_S:g} s", "is the machine overloaded? run the check-up again")
    except NoAnswer as silence:
        said = f"; it said {silence.noise[:100]!r}" if silence.noise else ""
        what = f"no answer within {LIMIT_S:g} s" if silence.is_late else f"the session {silence.text}"
        return failed(f"{what}{said}", "is the machine overloaded? run the check-up again")
    except LinkError as error:
        evidence, hint = split_advice(error.text)
        return failed(evidence, hint or "run the check-up again; see the machine's sshd log")
    except Exception as error:  # noqa: BLE001 - a defect of ours on one machine must not end the others' checks
        return failed(f"internal error: {type(error).__name__}: {error}", "please report it with this text")


def broken_checkups(problems: Iterable[ConfigProblem]) -> tuple[Checkup, ...]:
    """A checkup for each file of which no machine could be read, named after the file."""
    by_file: dict[str, list[ConfigProblem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    return tuple(_broken_checkup(path, found) for path, found in by_file.items())


def _broken_checkup(path: str, problems: Sequence[ConfigProblem]) -> Checkup:
    outcome = judge_broken_file(problems)
    results = [CheckResult("file", "file", outcome.state, outcome.evidence, outcome.hint)]
    checks = (*LOGIN_CHECKS, SHELL_CHECK, FORWARDING_CHECK, *GPU_CHECKS, ADDRESS_CHECK, *SYSTEM_CHECKS)
    results += [CheckResult(check.id, check.title, "skip", f"{NEEDS}file") for check in checks]
    return Checkup(Path(path).name, tuple(result.title for result in results), tuple(results))
