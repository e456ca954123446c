"""roles.yaml: bytes -> roles to plan, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fleettui.config.catalog_roles import ListedRolePart, NeedsPart, RolePart, RolesPart
from fleettui.config.catalog_schema import find_capability
from fleettui.config.catalog_words import Path, find_nearest, mistyped_in, unknown_engine
from fleettui.config.schema_errors import describe_error
from fleettui.config.yaml_builder import MAX_PROBLEMS, dotted
from fleettui.config.yaml_document import YamlDocument, read_yaml
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.machine import ConfigProblem
from fleettui.model.placement import PlanRole

_EXAMPLES = {
    "": "chat: {needs: {engine: vllm, min_vram_gb: 20}}",
    "name": "name: chat",
    "needs": "needs: {engine: vllm, min_vram_gb: 20}",
    "needs.engine": "engine: vllm",
    "needs.min_vram_gb": "min_vram_gb: 20",
    "needs.gpu": "gpu: false",
    "needs.min_ram_gb": "min_ram_gb: 16",
    "needs.gpus": "gpus: 2",
    "prefer": "prefer: largest",
    "count": "count: 2",
    "slots": "slots: 4",
    "priority": "priority: 10",
    "share_with": "share_with: chat",
    "cpu_fallback": "cpu_fallback: true",
}
"""What a right line looks like, by keys below the role."""

_Problem = tuple[Path, str]
_WRONG_WHOLE = "must be a map of roles or a list of them; write `roles: {chat: {needs: {engine: vllm}}}`"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One role as it stands in the file."""

    where: Path
    name: str
    """Empty: it has none."""
    keys: dict[str, Any]

    @property
    def is_listed(self) -> bool:
        """`roles` is a list."""
        return isinstance(self.where[-1], int)

    @property
    def named_keys(self) -> dict[str, Any]:
        """As an entry of a list has them."""
        return self.keys if self.is_listed else {**self.keys, "name": self.name}

    @property
    def needs(self) -> dict[str, Any]:
        needs = self.keys.get("needs")
        return needs if isinstance(needs, dict) else {}

    @property
    def share_with(self) -> str | None:
        name = self.keys.get("share_with")
        return name.strip() if isinstance(name, str) and name.strip() else None


def read_roles_file(
    data: bytes, path: str, engines: Sequence[str] = ()
) -> tuple[tuple[PlanRole, ...] | None, tuple[ConfigProblem, ...]]:
    """The roles that `data` declares, in their order; None as soon as there is one problem. Never raises.

    `engines`: those of models.yaml, known beside fleettui's own.
    """
    document = read_yaml(data)
    problems = [ConfigProblem(path, item.line, item.key, item.message) for item in document.problems]
    if not isinstance(document.value, dict):
        if not problems:
            message = "Roles stand in a map of keys; begin with the line `roles:`."
            problems.append(ConfigProblem(path, document.line_of(()), None, message))
        return None, tuple(problems)
    entries, found = _split(document.value)
    found += mistyped_in(document.value, RolesPart, ())
    roles: list[PlanRole] = []
    for entry in entries:
        try:
            roles.append(_role(ListedRolePart.model_validate(entry.named_keys), len(roles)))
        except ValidationError as error:
            problems += [_describe(item, entry, document, path) for item in error.errors(include_url=False)]
        found += _wrong_in(entry, [*engines, *ENGINE_TITLES])
    found += _wrong_between(entries, document)
    for where, text in found:
        problems.append(
            ConfigProblem(path, document.line_of(where), dotted(where), f"{dotted(where)} {text}.")
        )
    if problems:
        return None, tuple(sorted(problems, key=lambda problem: problem.line or 0)[: MAX_PROBLEMS + 1])
    return tuple(roles), ()


def _split(value: dict[str, Any]) -> tuple[list[_Entry], list[_Problem]]:
    """The roles of either form; an empty one has its defaults."""
    roles = value.get("roles")
    if roles is None:
        return [], []
    if isinstance(roles, dict):
        items: list[tuple[Path, str, Any]] = [(("roles", name), name, keys) for name, keys in roles.items()]
    elif isinstance(roles, list):
        items = [(("roles", place), "", keys) for place, keys in enumerate(roles)]
    else:
        return [], [(("roles",), _WRONG_WHOLE)]
    entries: list[_Entry] = []
    problems: list[_Problem] = []
    for where, name, keys in items:
        if not isinstance(keys, dict) and (keys is not None or not name):
            problems.append((where, f"must be a map of keys; write `{_EXAMPLES['']}`"))
            continue
        listed = (keys or {}).get("name")
        entries.append(_Entry(where, name or (listed.strip() if isinstance(listed, str) else ""), keys or {}))
    return entries, problems


def _describe(error: Any, entry: _Entry, document: YamlDocument, path: str) -> ConfigProblem:
    """One error of pydantic in the operator's words."""
    below: Path = tuple(error["loc"])
    pattern = ".".join(str(part) for part in below if not isinstance(part, int))
    if pattern == "name" and not entry.is_listed:
        below = ()
    return describe_error(error, (*entry.where, *below), _EXAMPLES.get(pattern), document, path)


def _wrong_in(entry: _Entry, known: Sequence[str]) -> Iterator[_Problem]:
    """What is wrong with one role beside the kinds of its values."""
    where, needs = entry.where, entry.needs
    misplaced = [key for key in entry.keys if key in NeedsPart.model_fields]
    for key in misplaced:
        yield (*where, key), f"is read below needs; write `needs: {{{key}: …}}`"
    rest = {key: value for key, value in entry.keys.items() if key not in misplaced}
    yield from mistyped_in(rest, ListedRolePart if entry.is_listed else RolePart, where)
    yield from mistyped_in(needs, NeedsPart, (*where, "needs"))
    listed = needs.get("engine")
    is_list = isinstance(listed, list)
    for place, name in enumerate(listed if isinstance(listed, list) else [listed]):
        if isinstance(name, str) and name.strip() and name.strip() not in known:
            at = (*where, "needs", "engine", place) if is_list else (*where, "needs", "engine")
            yield at, unknown_engine(name.strip(), known, "engines in models.yaml")
    lowest, highest = find_capability(needs.get("min_cc")), find_capability(needs.get("max_cc"))
    if lowest is not None and highest is not None and lowest > highest:
        text = f"is {_dots(lowest)}, above max_cc {_dots(highest)}: no card has both; correct one of the two"
        yield (*where, "needs", "min_cc"), text


def _wrong_between(entries: Sequence[_Entry], document: YamlDocument) -> Iterator[_Problem]:
    """Names that are taken, shares that lead nowhere or in a circle."""
    by_name: dict[str, _Entry] = {}
    for entry in entries:
        first = by_name.setdefault(entry.name, entry)
        if entry.name and first is not entry:
            line = document.line_of(first.where)
            place = "" if line is None else f" (line {line})"
            yield (
                entry.where,
                f"has the name {entry.name[:80]} of another role{place}; give it one of its own",
            )
    told: set[str] = set()
    for entry in entries:
        target, at = entry.share_with, (*entry.where, "share_with")
        if target is None or entry.name in told or by_name.get(entry.name) is not entry:
            continue
        if target == entry.name:
            yield at, "names the role itself; name another role, or remove the key"
        elif target not in by_name:
            near = find_nearest(target, list(by_name), 0.6)
            do = f"write {near}" if near else "write the name of a role of this file"
            yield at, f"names the role {target[:60]!r}, which does not exist; {do}"
        else:
            circle = _circle(entry.name, by_name)
            told.update(circle)
            if circle:
                steps = " -> ".join([*circle, circle[0]])
                yield at, f"leads in a circle ({steps[:200]}); remove one of these shares"


def _circle(name: str, by_name: dict[str, _Entry]) -> list[str]:
    """The shares that lead from a role back to itself; empty where they do not."""
    chain: list[str] = []
    at: str | None = name
    while at is not None and at in by_name and at not in chain:
        chain.append(at)
        at = by_name[at].share_with
    return chain if at == name and len(chain) > 1 else []


def _dots(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def _role(part: ListedRolePart, position: int) -> PlanRole:
    """A role with the defaults of keys that are left out."""
    needs = part.needs or NeedsPart()
    return PlanRole(
        part.name,
        tuple(dict.fromkeys(needs.engine or ())),
        float(needs.min_vram_gb or 0),
        needs.min_cc,
        needs.max_cc,
        needs.gpu is not False,
        float(needs.min_ram_gb or 0),
        needs.gpus or 1,
        part.prefer or "smallest_fitting",
        1 if part.count is None else part.count,
        part.slots or 1,
        100.0 if part.priority is None else float(part.priority),
        part.share_with,
        bool(part.cpu_fallback),
        position,
    )
