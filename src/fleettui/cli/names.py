"""Names of machines on the command line: what is said to one that no machine has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fleettui.cli.errors import EXIT_UNKNOWN_NAME, CommandError
from fleettui.config.machine_folder import MachineFiles
from fleettui.model.machine import ConfigProblem
from fleettui.view.problems import problem_line
from fleettui.view.units import count

DEMO_STEP = "or look at a simulated fleet: fleettui demo"


def folder_error(problems: Iterable[ConfigProblem], machines_dir: str) -> CommandError | None:
    """The folder itself cannot be read, so no name is known; None: it can."""
    for problem in problems:
        if problem.file == machines_dir:
            return CommandError(f"no machines: {problem.file}: {problem.message}", DEMO_STEP)
    return None


def check_names(names: Iterable[str], files: MachineFiles, machines_dir: str) -> None:
    """Raises CommandError for the first name that no file declares."""
    for name in names:
        if files.find(name) is None:
            raise unknown_name(name, files, machines_dir)


def unknown_name(
    name: str,
    files: MachineFiles,
    machines_dir: str,
    also: Iterable[str] = (),
    note: str = "",
    place: str = "",
) -> CommandError:
    """No machine has this name: why that may be, and which name may be meant.

    `also`: names that would have done beside the declared ones; `note`: begins the hint; `place`: where else
    it was looked for, to follow the folder.
    """
    unreadable = folder_error(files.problems, machines_dir)
    if unreadable is not None:
        return unreadable
    import difflib

    known = sorted({*(machine.name for machine in files.machines), *also})
    near = difflib.get_close_matches(name, known)
    hint = f"did you mean {', '.join(near)}?" if near else "see: fleettui machines list"
    return CommandError(
        f"no machine is named {name!r} in {machines_dir}{place}",
        f"{note}; {hint}" if note else hint,
        *_broken_file_hints(name, files.problems),
        exit_code=EXIT_UNKNOWN_NAME,
    )


def _broken_file_hints(name: str, problems: Sequence[ConfigProblem]) -> list[str]:
    """A file that cannot be used may be the one that declares it."""
    own = [problem for problem in problems if Path(problem.file).stem == name]
    if own:
        return [problem_line(own[0])]
    broken = len({problem.file for problem in problems})
    return [f"{count(broken, 'file')} there cannot be used: fleettui machines check"] if broken else []
