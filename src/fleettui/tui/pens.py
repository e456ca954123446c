"""Colours and attributes as a terminal takes them, and the shortest way from one to another."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style

_ATTRIBUTES = (
    ("bold", "1", "22"),
    ("dim", "2", "22"),
    ("italic", "3", "23"),
    ("underline", "4", "24"),
    ("underline2", "21", "24"),
    ("blink", "5", "25"),
    ("reverse", "7", "27"),
    ("conceal", "8", "28"),
    ("strike", "9", "29"),
    ("overline", "53", "55"),
)
"""Name in a style, code that turns it on, code that turns it off."""
_OFF = {on: off for _, on, off in _ATTRIBUTES}
_SEEN_ON_BLANKS = {"4", "21", "7", "9", "53"}


class Pen(NamedTuple):
    """What the terminal writes with; "" is its own default."""

    attributes: tuple[str, ...] = ()
    """Codes that turn them on."""
    color: str = ""
    ground: str = ""

    @property
    def marks_blanks(self) -> bool:
        """True when a blank written with it is more than its background."""
        return not _SEEN_ON_BLANKS.isdisjoint(self.attributes)


PLAIN = Pen()


@lru_cache(maxsize=2048)
def pen_of(style: Style | None, system: ColorSystem) -> Pen:
    """The pen for a style on a terminal with these colours."""
    if style is None:
        return PLAIN
    color, ground = style.color, style.bgcolor
    return Pen(
        tuple(on for name, on, _ in _ATTRIBUTES if getattr(style, name)),
        "" if color is None else _default_as_none(color.downgrade(system).get_ansi_codes()),
        "" if ground is None else _default_as_none(ground.downgrade(system).get_ansi_codes(foreground=False)),
    )


def _default_as_none(codes: tuple[str, ...]) -> str:
    return "" if codes in (("39",), ("49",)) else ";".join(codes)


@lru_cache(maxsize=2048)
def blank_pen(pen: Pen) -> Pen:
    """The same for blanks: all that differ in nothing that is seen on a blank share one."""
    return pen if pen.marks_blanks else Pen((), "", pen.ground)


@lru_cache(maxsize=4096)
def change_pen(held: Pen, wanted: Pen) -> str:
    """The sequence that turns one into the other."""
    if held == wanted:
        return ""
    kept = [code for code in held.attributes if code in wanted.attributes]
    off = list(dict.fromkeys(_OFF[code] for code in held.attributes if code not in wanted.attributes))
    on = [code for code in wanted.attributes if code not in kept or _OFF[code] in off]
    steps = [*off, *on]
    if wanted.color != held.color:
        steps.append(wanted.color or "39")
    if wanted.ground != held.ground:
        steps.append(wanted.ground or "49")
    anew = [code for code in ("0", *wanted.attributes, wanted.color, wanted.ground) if code]
    return f"\x1b[{min(';'.join(steps), ';'.join(anew), key=len)}m"


@lru_cache(maxsize=4096)
def pen_for_blanks(held: Pen, wanted: Pen) -> Pen:
    """The pen to write blanks with that should look like `wanted`: the one that is held, if it will do."""
    if held.marks_blanks or wanted.marks_blanks:
        return wanted
    return Pen(held.attributes, held.color, wanted.ground) if wanted.ground or not held.ground else wanted
