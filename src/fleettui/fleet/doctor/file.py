"""The machine file: it was read, and the files that it names are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fleettui.fleet.doctor.check import Check, Outcome, failed, passed, warned
from fleettui.fleet.doctor.context import Context
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.net.ssh_config_words import expand_home


def judge_file(machine: Machine, *, has_identity: bool) -> Outcome:
    """A file that was read."""
    if not has_identity:
        return warned(
            f"{machine.config_file}: ssh.identity {machine.ssh.identity} is no readable file",
            "correct ssh.identity, or put the private key there",
        )
    return passed(machine.config_file)


def judge_broken_file(problems: Sequence[ConfigProblem]) -> Outcome:
    """The first problem of a file; `machines check` tells all."""
    first = problems[0]
    place = first.file if first.line is None else f"{first.file}:{first.line}"
    key = f" {first.key}:" if first.key else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return failed(
        f"{place}:{key} {first.message}{more}", "correct the file; all problems: fleettui machines check"
    )


async def _check_file(context: Context) -> Outcome:
    identity = context.machine.ssh.identity
    path = expand_home(identity, context.home) if identity else None
    has_identity = path is None or Path(path).is_file()  # noqa: ASYNC240 - one stat of a local file
    return judge_file(context.machine, has_identity=has_identity)


FILE_CHECK = Check("file", "file", _check_file, ())
