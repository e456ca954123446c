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
    """`%h`; raises ValueError for a token that is not known."""
    first, *parts = text.split("%")
    out = [first]
    while parts:
        part = parts.pop(0)
        token = part[:1] or ("%" if parts else "")
        if token not in tokens:
            raise ValueError(f"%{token} is not known here")
        out.append(tokens[token] + (part[1:] if part else parts.pop(0)))
    return "".join(out)


def expand_variables(text: str) -> str:
    """`${VAR}` of the environment; raises ValueError for one that is not set."""
    first, *parts = text.split("${")
    out = [first]
    for part in parts:
        name, end, rest = part.partition("}")
        if not end:
            out.append("${" + part)
            continue
        if name not in os.environ:
            raise ValueError(f"environment variable {name[:40]} is not set")
        out.append(os.environ[name] + rest)
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

    A backslash takes the meaning from a quote, a backslash and, outside quotes, a blank (argv_split of
    OpenSSH). Raises ValueError for a quote without end.
    """
    words: list[str] = []
    current: list[str] = []
    quote = ""
    is_word = is_escaped = False
    text = line.strip()
    for index, char in enumerate(text):
        if is_escaped:
            current.append(char)
            is_escaped = False
        elif char == "\\" and _is_escape(text[index + 1 : index + 2], quote):
            is_word = is_escaped = True
        elif quote:
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


def _is_escape(following: str, quote: str) -> bool:
    return bool(following) and (following in "\"'\\" or (not quote and following == " "))


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
