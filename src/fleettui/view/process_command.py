"""Command lines of processes, cut to what tells them apart."""

from __future__ import annotations


def short_command(command: str) -> str:
    """The command without its folder; what it serves before its other options, a digest by its start."""
    program, *words = command.split() or [""]
    shown = [program.rpartition("/")[2] or program]
    if "--model" in words[:-1]:
        at = words.index("--model")
        name = words[at + 1].rpartition("/")[2]
        if name.startswith("sha256-"):
            name = name.removeprefix("sha256-")[:12]
        first = next(index for index, word in enumerate(words) if word.startswith("-"))
        words = [*words[:first], "--model", name, *words[first:at], *words[at + 2 :]]
    return " ".join(shown + words)
