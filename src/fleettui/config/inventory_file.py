"""An inventory: profiles in one YAML document, or in a list `nodes`, with the operator's keys beside them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from fleettui.config.catalog_schema import Capability, LoosePart
from fleettui.config.catalog_words import Path as KeyPath
from fleettui.config.machine_schema import Text, refuse
from fleettui.config.schema_errors import describe_error
from fleettui.config.yaml_builder import MAX_PROBLEMS, dotted
from fleettui.config.yaml_document import MAX_BYTES, YamlDocument, read_yaml
from fleettui.config.yaml_text import yaml_text
from fleettui.model.machine import ConfigProblem
from fleettui.model.profile import Profile
from fleettui.view.profile_document import profile_document, profile_of

NODES = "nodes"

_EXAMPLES = {
    "name": "name: pve-ada",
    "cpu": 'cpu: {model: "…", cores: 8, threads: 16}',
    "memory_gb": "memory_gb: 64",
    "disks": "disks: [{name: nvme0n1, size_gb: 256, rotational: false}]",
    "gpus": 'gpus: [{index: 0, name: "…", memory_gb: 20, compute_cap: 8.9}]',
    "gpus.index": "index: 0",
    "gpus.memory_gb": "memory_gb: 20",
    "gpus.name": 'name: "NVIDIA RTX 4000 Ada Generation"',
    "gpus.driver": 'driver: "570.124.06"',
    "gpus.disabled": "disabled: true",
    "cpu_roles": "cpu_roles: false",
}


def _check_size(value: float) -> float:
    if not 0 <= value < float("inf"):
        raise refuse("must be a number, 0 or more; write it without unit")
    return value


def _check_index(value: int) -> int:
    if value < 0:
        raise refuse("must be a whole number, 0 or more; write the number that nvidia-smi prints")
    return value


Size = Annotated[float, AfterValidator(_check_size)]


class CpuPart(LoosePart):
    """`cpu` of a node."""

    model: str | None = None
    cores: int | None = Field(None, ge=0)
    threads: int | None = Field(None, ge=0)


class DiskPart(LoosePart):
    """One of a node's `disks`."""

    name: Text
    size_gb: Size
    rotational: bool | None = None


class GpuPart(LoosePart):
    """One of a node's `gpus`."""

    index: Annotated[int, AfterValidator(_check_index)]
    name: Text | None = None
    memory_gb: Size | None = None
    memory_mib: int | None = Field(None, ge=0)
    compute_cap: Capability | None = None
    driver: Text | None = None
    unified: bool | None = None
    disabled: bool | None = None


class NodePart(LoosePart):
    """One node."""

    name: Text
    cpu: CpuPart | None = None
    memory_gb: Size | None = None
    memory_kb: int | None = Field(None, ge=0)
    disks: list[DiskPart] | None = None
    gpus: list[GpuPart] | None = None
    collected_at: str | None = None
    cpu_roles: bool | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a file says."""

    profiles: tuple[Profile, ...] = ()
    """In its order."""
    is_list: bool = True
    """False: the file is one document."""
    keys: dict[str, Any] = field(default_factory=dict)
    """What stands beside `nodes`."""

    def find(self, name: str) -> Profile | None:
        """The node of that name."""
        return next((profile for profile in self.profiles if profile.name == name), None)


def load_inventory(path: str) -> tuple[Inventory | None, tuple[ConfigProblem, ...]]:
    """The inventory in a file; None where there is none, or where something is wrong with it."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None, ()
    except IsADirectoryError:
        return None, (ConfigProblem(path, None, None, "This is a folder; name a file."),)
    except OSError as error:
        message = f"The inventory cannot be read ({error.strerror}); correct the file's rights."
        return None, (ConfigProblem(path, None, None, message),)
    return read_inventory(data, path)


def read_inventory(data: bytes, path: str) -> tuple[Inventory | None, tuple[ConfigProblem, ...]]:
    """The inventory that `data` declares; None as soon as there is one problem. Never raises."""
    document = read_yaml(data)
    problems = [ConfigProblem(path, item.line, item.key, item.message) for item in document.problems]
    value = document.value
    if not isinstance(value, dict):
        if not problems:
            message = "An inventory is one node, or a list of them; begin with `name:` or with `nodes:`."
            problems.append(ConfigProblem(path, document.line_of(()), None, message))
        return None, tuple(problems)
    is_list = NODES in value
    nodes: Any = value[NODES] or [] if is_list else [value]
    if not isinstance(nodes, list):
        message = "nodes must be a list; write `nodes: [{name: ada, gpus: []}]`."
        return None, (*problems, ConfigProblem(path, document.line_of((NODES,)), NODES, message))
    for place, node in enumerate(nodes):
        where: KeyPath = (NODES, place) if is_list else ()
        problems += _problems_of(node, where, document, path)
    for where, text in _taken(nodes, is_list=is_list):
        problems.append(
            ConfigProblem(path, document.line_of(where), dotted(where), f"{dotted(where)} {text}.")
        )
    if problems:
        return None, tuple(sorted(problems, key=lambda problem: problem.line or 0)[: MAX_PROBLEMS + 1])
    keys = {key: item for key, item in value.items() if key != NODES} if is_list else {}
    return Inventory(tuple(profile_of(node) for node in nodes), is_list, keys), ()


def _problems_of(node: Any, where: KeyPath, document: YamlDocument, path: str) -> Iterator[ConfigProblem]:
    try:
        NodePart.model_validate(node)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            pattern = ".".join(part for part in item["loc"] if isinstance(part, str))
            at = (*where, *item["loc"])
            yield describe_error(item, at or ("node",), _EXAMPLES.get(pattern), document, path)


def _taken(nodes: Sequence[Any], *, is_list: bool) -> Iterator[tuple[KeyPath, str]]:
    """Names and indices that stand twice."""
    names: set[str] = set()
    for place, node in enumerate(nodes):
        if not isinstance(node, dict):
            continue
        where: KeyPath = (NODES, place) if is_list else ()
        name, gpus = node.get("name"), node.get("gpus")
        if isinstance(name, str):
            if name in names:
                yield (*where, "name"), f"is {name[:80]}, as another node is called; keep one of the two"
            names.add(name)
        indices: set[int] = set()
        for at, gpu in enumerate(gpus if isinstance(gpus, list) else ()):
            index = gpu.get("index") if isinstance(gpu, dict) else None
            if isinstance(index, int):
                if index in indices:
                    yield (
                        (*where, "gpus", at, "index"),
                        f"is {index}, as another GPU has; correct one of the two",
                    )
                indices.add(index)


def inventory_text(inventory: Inventory) -> str:
    """The YAML of an inventory: one document where it is one node and no list, else `nodes`."""
    nodes = [profile_document(profile) for profile in inventory.profiles]
    document = {**inventory.keys, NODES: nodes} if inventory.is_list or len(nodes) != 1 else nodes[0]
    return yaml_text(document)


def write_inventory(path: str, inventory: Inventory) -> None:
    """Write the whole file, or leave the old one as it is. Raises OSError."""
    target = Path(os.path.realpath(path))
    handle, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(inventory_text(inventory).encode())
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask
        Path(draft).chmod(mode)
        Path(draft).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(draft).unlink()
        raise
