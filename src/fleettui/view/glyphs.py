"""Signs of the screen in two sets: Unicode, and ASCII for terminals that have no more."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.snapshot import Health


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs. Each is one column wide, `ellipsis` aside."""

    healthy: str = "●"
    degraded: str = "◐"
    unhealthy: str = "▲"
    offline: str = "✗"
    unknown: str = "?"
    hollow: str = "○"
    """There, and not on a GPU."""
    old: str = "◌"
    """Was there when last heard."""
    branch: str = "├"
    branch_last: str = "└"
    """Before a line that belongs to the one above."""
    expanded: str = "▾"
    collapsed: str = "▸"
    flag: str = "⚑"
    tagged: str = "▌"
    bar_left: str = "▕"
    bar_right: str = "▏"
    bar_parts: tuple[str, ...] = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█")
    """Nothing to full; the last one fills a column."""
    card_bar_parts: tuple[str, ...] = ("", "▖", "▄")
    """The same for a single GPU below its machine: thinner, so that bars of stacked rows stay apart."""
    ascending: str = "▴"
    descending: str = "▾"
    down: str = "↓"
    up: str = "↑"
    dot: str = "·"
    dash: str = "–"
    rule: str = "─"
    """Sets things apart, repeated over the width."""
    ellipsis: str = "…"
    is_ascii: bool = False

    def of_health(self, health: Health) -> str:
        """The sign of a health."""
        return {
            "healthy": self.healthy,
            "degraded": self.degraded,
            "unhealthy": self.unhealthy,
            "offline": self.offline,
        }.get(health, self.unknown)

    def plain(self, text: str) -> str:
        """The text with our own typographic signs replaced where the set has no more than ASCII."""
        return text.translate(_TO_ASCII) if self.is_ascii and not text.isascii() else text


UNICODE = Glyphs()
ASCII = Glyphs(
    healthy="*",
    degraded="~",
    unhealthy="!",
    offline="x",
    hollow="o",
    old="=",
    branch="|",
    branch_last="`",
    expanded="v",
    collapsed=">",
    flag="!",
    tagged="+",
    bar_left="[",
    bar_right="]",
    bar_parts=("", "#"),
    card_bar_parts=("", "="),
    ascending="^",
    descending="v",
    down="v",
    up="^",
    dot="-",
    dash="-",
    rule="-",
    ellipsis="~",
    is_ascii=True,
)
_TO_ASCII = {
    ord("–"): "-",
    ord("…"): "~",
    ord("·"): "-",
    ord("°"): None,
    ord("×"): "x",
    ord("±"): "+/-",
    ord("→"): "->",
    ord("⚑"): "!",
    ord("↓"): "v",
    ord("↑"): "^",
}


def glyphs_of(name: str) -> Glyphs:
    """The set that `glyphs:` in the settings names."""
    return ASCII if name == "ascii" else UNICODE
