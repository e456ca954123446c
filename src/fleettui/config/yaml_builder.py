"""YAML parser events -> one tree of JSON-ready values that knows the line of every key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from fleettui.config.yaml_scalars import core_value

MAX_DEPTH = 64
MAX_PROBLEMS = 100
"""Nobody reads more at once, and a megabyte of equal keys would make hundreds of thousands."""
MAX_EXPANDED = 4 << 20
"""Characters and nodes after aliases are followed; a file without aliases cannot reach it."""

EMPTY = "The file is empty; write its keys or delete it."
"""What is said of a file without any value."""

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """Why a text is no document, or not a clean one."""

    line: int | None
    """1-based."""
    key: str | None
    """Dotted path."""
    message: str


@dataclass(slots=True)
class YamlNode:
    value: Any
    line: int
    weight: int
    """Characters and nodes below, aliases expanded."""
    children: dict[Any, tuple[int, YamlNode]] = field(default_factory=dict)
    """Key or index -> line of the key, node."""


class YamlFailure(Exception):
    """Ends the reading of one document."""

    def __init__(self, line: int | None, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.problem = YamlProblem(line, key or None, message)


def dotted(path: Sequence[str | int]) -> str:
    """`hardware.gpu[0].vram_gb`; safe to print, whatever the keys hold."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part[:80]}" if text else part[:80]
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class YamlBuilder:
    """Turns parser events into one node tree."""

    def __init__(self) -> None:
        self.problems: list[YamlProblem] = []
        self._anchors: dict[str, YamlNode | None] = {}
        """None: still being built, so an alias to it would contain itself."""
        self._next: Callable[[], Any] = lambda: None

    def build_document(self, events: Iterator[Any]) -> YamlNode:
        self._next = events.__next__
        self._next()  # stream start
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise YamlFailure(None, EMPTY)
        root = self._build(self._next(), ())
        self._next()  # document end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            line = after.start_mark.line + 1
            raise YamlFailure(line, "A second document begins here (---); give it a file of its own.")
        return root

    def _build(self, event: Any, path: tuple[str | int, ...]) -> YamlNode:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._follow(event.anchor, line, path)
        if len(path) >= MAX_DEPTH:
            raise YamlFailure(
                line, f"The file is nested more than {MAX_DEPTH} deep; flatten it.", dotted(path[:4])
            )
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, line, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, line, path)
        else:
            node = self._mapping(event, line, path)
        if node.weight > MAX_EXPANDED:
            raise YamlFailure(
                line, "Aliases (*name) blow this file up beyond reason; write the values out.", dotted(path)
            )
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _follow(self, anchor: str | None, line: int, path: tuple[str | int, ...]) -> YamlNode:
        if anchor is None or anchor not in self._anchors:
            raise YamlFailure(
                line, f"*{anchor} refers to nothing; define &{anchor} above this line.", dotted(path)
            )
        node = self._anchors[anchor]
        if node is None:
            raise YamlFailure(line, f"*{anchor} contains itself; write the value out.", dotted(path))
        return node

    def _scalar(self, event: Any, line: int, path: tuple[str | int, ...]) -> YamlNode:
        text = event.value
        tag = event.tag
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise YamlFailure(
                line, "The text holds half a character (\\ud800 to \\udfff); remove it.", dotted(path)
            )
        if tag is None:
            value = core_value(text) if event.implicit[0] else text
        else:
            value = self._tagged(tag, text, line, path)
        return YamlNode(value, line, len(text) + 1)

    def _tagged(self, tag: str, text: str, line: int, path: tuple[str | int, ...]) -> Any:
        kind = tag.removeprefix(_TAG)
        if tag == "!" or kind in ("str", "timestamp", "binary"):
            return text
        value = core_value(text)
        wanted = {"int": int, "float": int | float, "bool": bool, "null": type(None)}.get(kind)
        if wanted is None:
            self._refuse_tag(tag, line, path)
        elif not isinstance(value, wanted) or (kind != "bool" and isinstance(value, bool)):
            self._note(line, path, f"This is no {kind} although its tag says so; remove the tag.")
        return value

    def _sequence(self, event: Any, line: int, path: tuple[str | int, ...]) -> YamlNode:
        if event.tag not in (None, "!", _TAG + "seq"):
            self._refuse_tag(event.tag, line, path)
        node = YamlNode([], line, 1)
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            index = len(node.value)
            item = self._build(event, (*path, index))
            node.value.append(item.value)
            node.weight += item.weight
            node.children[index] = (event.start_mark.line + 1, item)
        return node

    def _mapping(self, event: Any, line: int, path: tuple[str | int, ...]) -> YamlNode:
        if event.tag not in (None, "!", _TAG + "map"):
            self._refuse_tag(event.tag, line, path)
        own: dict[str, tuple[int, YamlNode]] = {}
        merged: dict[str, tuple[int, YamlNode]] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key_line = event.start_mark.line + 1
            key, is_merge = self._key(event, key_line, path)
            value = self._build(self._next(), (*path, key))
            if is_merge:
                self._merge(merged, value, key_line, path)
            elif key in own:
                first = own[key][0]
                self._note(
                    key_line, (*path, key), f"This key stands in line {first} already; remove one of the two."
                )
            else:
                own[key] = (key_line, value)
        children = {**merged, **own}
        weight = 1 + sum(len(key) + node.weight for key, (_, node) in children.items())
        values = {key: node.value for key, (_, node) in children.items()}
        return YamlNode(values, line, weight, children)

    def _key(self, event: Any, line: int, path: tuple[str | int, ...]) -> tuple[str, bool]:
        """The key as written, and whether it is the merge key `<<`."""
        if isinstance(event, yaml.AliasEvent):
            node = self._follow(event.anchor, line, path)
            if isinstance(node.value, str):
                return node.value, False
        elif isinstance(event, yaml.ScalarEvent):
            node = self._build(event, (*path, event.value))
            if event.value or not event.implicit[0]:
                return event.value, event.value == "<<" and event.implicit[0]
        raise YamlFailure(
            line, "A key must be one word or quoted text; this one is empty, a list or a map.", dotted(path)
        )

    def _merge(
        self, merged: dict[str, tuple[int, YamlNode]], node: YamlNode, line: int, path: tuple[str | int, ...]
    ) -> None:
        sources = [node] if isinstance(node.value, dict) else [item for _, item in node.children.values()]
        if not isinstance(node.value, dict | list) or any(
            not isinstance(item.value, dict) for item in sources
        ):
            self._note(line, (*path, "<<"), "<< takes a map or a list of maps, such as *defaults; change it.")
            return
        for source in sources:
            for key, child in source.children.items():
                merged.setdefault(key, child)

    def _refuse_tag(self, tag: str, line: int, path: tuple[str | int, ...]) -> None:
        self._note(line, path, f"The tag {tag.replace(_TAG, '!!')[:60]} means nothing here; remove it.")

    def _note(self, line: int, path: Sequence[str | int], message: str) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            raise YamlFailure(line, "The problems go on from here; correct those before it first.")
        self.problems.append(YamlProblem(line, dotted(path) or None, message))
