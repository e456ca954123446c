"""Creates machine files for `machines add`, deletes one for `machines remove`; none is ever rewritten."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fleettui.config.machine_file import read_machine_file
from fleettui.config.yaml_scalars import write_text
from fleettui.model.machine import ConfigProblem, Machine

DEFAULT_ROLE = "gpu-host"


class MachineFileError(Exception):
    """A machine file cannot be created or deleted; the text says which, why and what to do."""


@dataclass(frozen=True, slots=True)
class NewMachine:
    """What a new machine file says."""

    name: str
    hostname: str
    role: str = DEFAULT_ROLE
    tags: tuple[str, ...] = ()
    ssh_host: str | None = None
    """Where it is not `hostname`: a name that only ~/.ssh/config knows."""
    ssh_user: str | None = None
    ssh_port: int | None = None

    @property
    def text(self) -> str:
        """The file."""
        ssh = {"host": self.ssh_host, "user": self.ssh_user, "port": self.ssh_port}
        lines = [
            f"name: {write_text(self.name)}",
            f"role: {write_text(self.role)}",
            "hardware: {}",
            "network:",
            f"  hostname: {write_text(self.hostname)}",
            "models: []",
            f"tags: [{', '.join(map(write_text, self.tags))}]" if self.tags else "",
            "ssh:" if any(ssh.values()) else "",
            *(
                f"  {key}: {value if isinstance(value, int) else write_text(value)}"
                for key, value in ssh.items()
                if value
            ),
        ]
        return "".join(f"{line}\n" for line in lines if line)

    def read(self, path: str) -> tuple[Machine | None, tuple[ConfigProblem, ...]]:
        """The machine as the file will declare it, or what is wrong with it."""
        return read_machine_file(self.text.encode(), path)


def parse_target(text: str) -> tuple[str | None, str, int | None]:
    """`[USER@]HOST[:PORT]` -> (user, host, SSH port); IPv6 with a port in brackets. Raises ValueError."""
    user, at, rest = text.strip().rpartition("@")
    if rest.startswith("["):
        host, end, tail = rest[1:].partition("]")
        port = tail.removeprefix(":")
        is_form = bool(end) and (not tail or tail.startswith(":"))
    elif rest.count(":") > 1:
        host, port, is_form = rest, "", True
    else:
        host, colon, port = rest.partition(":")
        is_form = not colon or bool(port)
    is_port = not port or (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536)
    if not host or not is_form or not is_port or (at and not user):
        raise ValueError(f"{text[:80]!r} is not [USER@]HOST[:PORT]")
    return (user or None), host, (int(port) if port else None)


def default_name(host: str) -> str:
    """`ada.lan` -> `ada`; an address is its own name."""
    is_address = ":" in host or host.replace(".", "").isdigit()
    return host if is_address else host.partition(".")[0]


def path_for(machines_dir: str, name: str) -> str:
    """Where the file of a new machine goes."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "machine"
    return str(Path(machines_dir, f"{stem}.yaml"))


def create_machine_files(machines_dir: str, machines: Sequence[NewMachine]) -> list[str]:
    """Create all of them or none; never replaces a file. Raises MachineFileError."""
    drafts: list[tuple[Path, Path]] = []
    made: list[Path] = []
    try:
        Path(machines_dir).mkdir(parents=True, exist_ok=True)
        for number, new in enumerate(machines):
            path = Path(path_for(machines_dir, new.name))
            draft = path.with_name(f".{path.name}.{os.getpid()}.{number}.new")
            drafts.append((draft, path))
            draft.write_bytes(new.text.encode())
        for draft, path in drafts:
            os.link(draft, path)  # unlike a rename it fails where there is a file
            made.append(path)
    except OSError as error:
        _remove(made)
        path = drafts[-1][1] if len(made) >= len(drafts) or not drafts else drafts[len(made)][1]
        if isinstance(error, FileExistsError) and drafts:
            raise MachineFileError(
                f"{path}: there is such a file already, and it is never overwritten; "
                "give the machine another name with --name, or edit that file"
            ) from None
        place = path if drafts else machines_dir
        raise MachineFileError(
            f"{place}: the file cannot be created ({error.strerror}); correct owner and rights of the folder"
        ) from None
    finally:
        _remove(draft for draft, _ in drafts)
    return [str(path) for path in made]


def delete_machine_file(machine: Machine) -> None:
    """Delete the file that declares the machine. Raises MachineFileError."""
    path = Path(machine.config_file)
    try:
        declared, _ = read_machine_file(path.read_bytes(), str(path))
        if declared is not None and declared.name != machine.name:
            raise MachineFileError(
                f"{path}: declares {declared.name} now, not {machine.name}; nothing deleted"
            )
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise MachineFileError(
            f"{path}: the file cannot be deleted ({error.strerror}); delete it yourself"
        ) from None


def _remove(paths: object) -> None:
    for path in paths:  # type: ignore[attr-defined]
        with suppress(OSError):
            path.unlink()
