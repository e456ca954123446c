"""Lines and values of ssh_config(5): words, patterns, tokens. Pure."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence

from fleettui.net.host_keys import match_glob


def match_list(name: str, patterns: Sequence[str]) -> bool:
    """Host line rules: any match counts unless a negated pattern matches; case counts, as for ssh."""
    is_match = False
    for pattern in patterns:
        is_negated = pattern.startswith("!")
        if match_glob(name, pattern.lstrip("!")):
            if is_negated:
                return False
            is_match = True
    return is_match


def expand_tokens(text: str, tokens: dict[str, str]) -> str:
    """`%h` and `${VAR}`; raises ValueError for what is not known."""
    out = []
    rest = iter(range(len(text)))
    for index in rest:
        if text[index] == "%":
            token = text[index + 1 : index + 2]
            if token not in tokens:
                raise ValueError(f"%{token} is not known here")
            out.append(tokens[token])
            next(rest, None)
        elif text.startswith("${", index) and "}" in text[index:]:
            name = text[index + 2 : text.index("}", index)]
            if name not in os.environ:
                raise ValueError(f"environment variable {name[:40]} is not set")
            out.append(os.environ[name])
            for _ in range(len(name) + 2):
                next(rest, None)
        else:
            out.append(text[index])
    return "".join(out)


def expand_home(path: str, home: str) -> str:
    """`~` and `~/x`."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def local_user() -> str:
    """Name this process runs as; "" where the system does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def split_line(line: str) -> list[str]:
    """Words of a line: `Key value`, `Key=value`, double or single quotes, `#` opens a comment.

    Raises ValueError for a quote without end.
    """
    words: list[str] = []
    current: list[str] = []
    quote = ""
    is_word = False
    text = line.strip()
    for index, char in enumerate(text):
        if quote:
            if char == quote:
                quote = ""
            else:
                current.append(char)
        elif char in "\"'":
            quote, is_word = char, True
        elif char == "#" and not is_word:
            break
        elif char.isspace() or (char == "=" and _is_separator(words, is_word, text, index)):
            if is_word:
                words.append("".join(current))
                current, is_word = [], False
        else:
            current.append(char)
            is_word = True
    if quote:
        raise ValueError("quote without end")
    if is_word:
        words.append("".join(current))
    return words


def _is_separator(words: list[str], is_word: bool, text: str, index: int) -> bool:
    """One `=` may stand between the key and its value."""
    if len(words) == 0:
        return is_word
    return len(words) == 1 and not is_word and "=" not in text[:index]


def rest_of(line: str) -> str:
    """Everything behind the key: ProxyCommand takes the line as it stands."""
    text = line.strip()
    for index, char in enumerate(text):
        if char.isspace() or char == "=":
            return text[index:].lstrip().removeprefix("=").strip()
    return ""
