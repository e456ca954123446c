"""Keys of the operator's settings that cannot be bound: actions and keys that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

from fleettui.tui.actions import BY_ID

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMED = frozenset(
    {*(key.value for key in Keys if not key.value.startswith("<")), *KEY_NAME_REPLACEMENTS.values()}
)
_SPELLED = {"esc": "escape", "return": "enter", "del": "delete", "pgup": "pageup", "pgdn": "pagedown",
            "page_up": "pageup", "page_down": "pagedown", "spacebar": "space"}  # fmt: skip
"""What people write, and Textual's name for it."""


def key_problems(keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Action and what is wrong with its entry: a sentence without its capital and full stop."""
    for action, bound in keys.items():
        if action not in BY_ID:
            near = difflib.get_close_matches(action.lower().replace("-", "_"), list(BY_ID), 1, 0.5)
            known = f"actions are {', '.join(BY_ID)}"
            yield action, f"there is no action {action!r}; {f'did you mean {near[0]}?' if near else known}"
            continue
        for key in (part.strip() for part in bound.split(",")):
            if not is_key(key):
                yield action, f"there is no key {key!r}; {_suggest(key)}"


def is_key(name: str) -> bool:
    """True for a key as Textual names it: `q`, `ctrl+s`, `pagedown`, `question_mark`."""
    if len(name) == 1:
        return name.isprintable()
    *modifiers, key = name.split("+")
    if len(set(modifiers)) != len(modifiers) or not set(modifiers) <= set(_MODIFIERS):
        return False
    return name in _NAMED or key in _NAMED or len(key) == 1 or key_to_character(key) is not None


def _suggest(name: str) -> str:
    *modifiers, key = name.lower().replace("-", "+").split("+")
    spelled = "+".join((*modifiers, _SPELLED.get(key, key)))
    if spelled != name and is_key(spelled):
        return f"did you mean {spelled}?"
    near = difflib.get_close_matches(name.lower(), sorted(_NAMED), 1, 0.6)
    if near:
        return f"did you mean {near[0]}?"
    return "keys are one character, or names such as ctrl+s, f5, pagedown, question_mark"
