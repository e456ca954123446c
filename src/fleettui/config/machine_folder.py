"""The folder of machine files, read again only where something changed."""

# ruff: noqa: PTH116, PTH118
# a Path for each file would triple the cost of an idle refresh
from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field, replace

from fleettui.config.machine_file import read_machine_file
from fleettui.config.yaml_document import MAX_BYTES
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.order import natural_key

_Stamp = tuple[int, int, int, int]
"""mtime and ctime in ns, size, inode; ctime because a chmod makes a file readable and leaves mtime alone."""

_RACY_NS = 50_000_000
"""A file this young when it was read may change again without a new stamp (kernel clock ticks: 1-10 ms)."""


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """What the folder declares now."""

    machines: tuple[Machine, ...] = ()
    """In natural order of the names, each name once."""
    problems: tuple[ConfigProblem, ...] = ()
    """In order of file and line."""

    def find(self, name: str) -> Machine | None:
        """The machine of that exact name."""
        return next((machine for machine in self.machines if machine.name == name), None)


@dataclass(slots=True)
class _File:
    """One file as it was last read."""

    stamp: _Stamp | None = None
    """None: read it again next time."""
    content: bytes | None = None
    machine: Machine | None = None
    problems: tuple[ConfigProblem, ...] = ()
    last_good: Machine | None = None
    """The version in use, also while the file is broken."""


@dataclass(slots=True)
class MachineFolder:
    """Reads a folder of machine files; `refresh` is cheap while nothing changes. One thread at a time."""

    path: str
    _files: dict[str, _File] = field(default_factory=dict)
    _folder_problem: ConfigProblem | None = None
    _answer: MachineFiles | None = None

    def refresh(self) -> MachineFiles:
        """What the folder declares now; the same object as before while nothing changed."""
        try:
            found = _scan(self.path)
            folder_problem = None
        except OSError as error:
            found = None
            folder_problem = _folder_problem(self.path, error, has_machines=bool(self._files))
        changed = self._answer is None or folder_problem != self._folder_problem
        self._folder_problem = folder_problem
        if found is not None and self._take(found):
            changed = True
        if changed or self._answer is None:
            self._answer = self._collect()
        return self._answer

    def _take(self, found: dict[str, os.stat_result | OSError]) -> bool:
        """Brings the known files up to date; True when one changed."""
        gone = self._files.keys() - found.keys()
        for name in gone:
            del self._files[name]
        changed = bool(gone)
        for name, status in found.items():
            known = self._files.get(name)
            if known is None:
                known = self._files[name] = _File()
                changed = True
            if isinstance(status, OSError):
                changed |= _fail(known, self._path_of(name), _read_failure(status))
                continue
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if stamp != known.stamp:
                changed |= _read(known, self._path_of(name), stamp, status.st_mode)
        return changed

    def _collect(self) -> MachineFiles:
        machines: dict[str, Machine] = {}
        problems: list[ConfigProblem] = [] if self._folder_problem is None else [self._folder_problem]
        for name in sorted(self._files):
            file = self._files[name]
            own = list(file.problems)
            machine = file.machine
            if machine is not None and machine.name in machines:
                own.append(_duplicate(machine, machines[machine.name]))
                machine = None
            if machine is not None:
                file.last_good = machine
            elif file.last_good is not None and file.last_good.name not in machines:
                machine = file.last_good
                kept = f"{own[0].message} The last good version of this file stays in use until then."
                own[0] = replace(own[0], message=kept)
            if machine is not None:
                machines[machine.name] = machine
            problems += own
        in_order = tuple(sorted(machines.values(), key=lambda machine: natural_key(machine.name)))
        return MachineFiles(in_order, tuple(problems))

    def _path_of(self, name: str) -> str:
        return os.path.join(self.path, name)


def load_machines(path: str) -> MachineFiles:
    """Reads the folder once."""
    return MachineFolder(path).refresh()


def _scan(path: str) -> dict[str, os.stat_result | OSError]:
    """Status of each `*.yaml` and `*.yml`, links followed; hidden names and folders are left out."""
    found: dict[str, os.stat_result | OSError] = {}
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or not name.endswith((".yaml", ".yml")):
                continue
            try:
                status = os.stat(entry.path)
            except OSError as error:
                found[name] = error
                continue
            if not stat.S_ISDIR(status.st_mode):
                found[name] = status
    return found


def _read(file: _File, path: str, stamp: _Stamp, mode: int) -> bool:
    """Reads a file whose stamp changed; True when that changed anything but the stamp."""
    if not stat.S_ISREG(mode):
        return _fail(file, path, "This is no ordinary file; replace it by one.")
    began_ns = time.time_ns()
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return _fail(file, path, _read_failure(error))  # no stamp kept: tried again each time
    is_racy = abs(began_ns - max(stamp[0], stamp[1])) < _RACY_NS
    file.stamp = None if is_racy else stamp
    if content == file.content:
        return False
    file.content = content
    file.machine, file.problems = read_machine_file(content, path)
    return True


def _fail(file: _File, path: str, message: str) -> bool:
    """Notes that a file cannot be read; True when that is new."""
    problems = (ConfigProblem(path, None, None, message),)
    if file.problems == problems and file.content is None:
        return False
    file.stamp, file.content, file.machine, file.problems = None, None, None, problems
    return True


def _read_failure(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "This user may not read the file; run `chmod u+r` on it or change its owner."
    if isinstance(error, FileNotFoundError):
        return "This link leads to no file; correct or remove it."
    return f"The file cannot be read ({error.strerror or error}); check the disk or remove the file."


def _folder_problem(path: str, error: OSError, *, has_machines: bool) -> ConfigProblem:
    if isinstance(error, FileNotFoundError):
        from shlex import quote

        create = f"mkdir -p {quote(path)}"
        message = (
            f"The machines folder does not exist; create it (`{create}`) or name another with --machines."
        )
    elif isinstance(error, NotADirectoryError):
        message = "This is a file, not a folder of machine files; name its folder with --machines."
    elif isinstance(error, PermissionError):
        message = "This user may not list the machines folder; run `chmod u+rx` on it or change its owner."
    else:
        message = (
            f"The machines folder cannot be read ({error.strerror or error}); check the path and the disk."
        )
    if has_machines:
        message += " The machines read before stay in use."
    return ConfigProblem(path, None, None, message)


def _duplicate(machine: Machine, first: Machine) -> ConfigProblem:
    message = (
        f"The name {machine.name} stands in {first.config_file} already, which is kept; "
        f"give {machine.config_file} another name."
    )
    return ConfigProblem(machine.config_file, _name_line(machine), "name", message)


def _name_line(machine: Machine) -> int | None:
    """Line of `name:`; read again, since a machine keeps no lines and duplicates are rare."""
    from fleettui.config.yaml_document import read_yaml

    try:
        with open(machine.config_file, "rb") as stream:
            return read_yaml(stream.read(MAX_BYTES)).line_of(("name",))
    except OSError:
        return None
