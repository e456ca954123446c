"""The report of `machines doctor`: checks grouped by machine, and one sentence for all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from fleettui.model.doctor import CheckResult, CheckState, Checkup, Verdict
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import count

TONES: dict[CheckState, Tone] = {"pass": "good", "warn": "warn", "fail": "bad", "skip": "dim"}
_SIGNS: dict[CheckState, tuple[str, str]] = {
    "pass": ("✓", "+"),
    "warn": ("!", "!"),
    "fail": ("✗", "x"),
    "skip": ("·", "-"),
}
_WORDS: dict[CheckState, str] = {"pass": "", "warn": "warning: ", "fail": "failed: ", "skip": ""}
_ORDER: tuple[Verdict, ...] = ("pass", "warn", "fail")
"""Troubles last: they stand just above the prompt."""
_TITLE_MAX = 18
_TITLES_SHOWN = 4
"""More checks that were skipped together are only counted."""
_MIN_WRAP = 24
"""Narrower sentences are not wrapped: they would fill the screen."""


def sign_of(state: CheckState, glyphs: Glyphs) -> str:
    """One column."""
    return _SIGNS[state][glyphs.is_ascii]


def report_lines(
    checkups: Sequence[Checkup],
    *,
    named: Collection[str] = (),
    is_verbose: bool = False,
    width: int | None = None,
    glyphs: Glyphs = UNICODE,
) -> list[Cells]:
    """All machines, the troubled ones last, then the summary. `named`: machines shown whole even where all is
    well. `width`: columns of the terminal, where sentences wrap; None, where there is none, wraps nothing."""
    titles = [clean(result.title) for checkup in checkups for result in checkup.results]
    title_width = min(max(map(cell_width, titles), default=0), _TITLE_MAX)
    name_width = max((cell_width(clean(checkup.name)) for checkup in checkups), default=0)
    page = _Page(glyphs, width, title_width, min(name_width, 30), is_verbose)
    lines: list[Cells] = []
    for verdict in _ORDER:
        for checkup in (item for item in checkups if item.verdict == verdict):
            if verdict == "pass" and not is_verbose and checkup.name not in named:
                lines.append(page.one_line(checkup))
                continue
            if lines:
                lines.append(())
            lines += page.whole(checkup)
    return [*lines, (), *page.summary(checkups)]


def summary_text(checkups: Sequence[Checkup]) -> str:
    """`6 machines: 4 fine, 1 warning, 1 failed`."""
    verdicts = [checkup.verdict for checkup in checkups]
    parts = [f"{verdicts.count('pass')} fine"]
    if "warn" in verdicts:
        parts.append(count(verdicts.count("warn"), "warning"))
    if "fail" in verdicts:
        parts.append(f"{verdicts.count('fail')} failed")
    return f"{count(len(checkups), 'machine')}: {', '.join(parts)}"


class _Page:
    """How wide what is."""

    def __init__(
        self, glyphs: Glyphs, width: int | None, title_width: int, name_width: int, is_verbose: bool
    ) -> None:
        self._glyphs = glyphs
        self._width = width
        self._title_width = title_width
        self._name_width = name_width
        self._is_verbose = is_verbose

    def one_line(self, checkup: Checkup) -> Cells:
        """A machine on which all is well."""
        done = sum(result.state == "pass" for result in checkup.results)
        skipped = len(checkup.results) - done
        told = f"{count(done, 'check')} passed"
        if skipped:
            told += f", {skipped} skipped"
        name = fit(clean(checkup.name), self._name_width, self._glyphs.ellipsis)
        return (
            Cell(sign_of("pass", self._glyphs), "good"),
            Cell(f" {name}", "strong"),
            Cell(f"  {told}, {_seconds(checkup.took_ms)}", "dim"),
        )

    def whole(self, checkup: Checkup) -> Iterator[Cells]:
        """A machine with each of its checks."""
        states = [result.state for result in checkup.results]
        counts = [f"{states.count('fail')} failed"] if "fail" in states else []
        counts += [count(states.count("warn"), "warning")] if "warn" in states else []
        verdict = checkup.verdict
        yield (
            Cell(sign_of(verdict, self._glyphs), TONES[verdict]),
            Cell(f" {clean(checkup.name)}", "strong"),
            Cell(f"  {', '.join(counts) or 'all is well'}", TONES[verdict]),
            Cell(f", {_seconds(checkup.took_ms)}", "dim"),
        )
        for group in _joined(checkup.results, is_verbose=self._is_verbose):
            yield from self._check(group)

    def _check(self, group: Sequence[CheckResult]) -> Iterator[Cells]:
        first = group[0]
        tone = TONES[first.state]
        head = f"  {sign_of(first.state, self._glyphs)} "
        if len(group) > 1:
            title = fit(f"{len(group)} checks", self._title_width)
        else:
            title = fit(clean(first.title), self._title_width, self._glyphs.ellipsis)
        indent = cell_width(head) + self._title_width + 2
        text_tone: Tone = "dim" if first.state == "skip" else "plain" if first.state == "pass" else tone
        text = f"{_WORDS[first.state]}{first.evidence}"
        if first.state == "skip":
            text = f"skipped, {first.evidence}"
        if 1 < len(group) <= _TITLES_SHOWN:
            text += f" ({', '.join(clean(result.title) for result in group)})"
        parts = self._wrapped(text, indent)
        yield (Cell(head, tone), Cell(f"{title}  ", text_tone), Cell(parts[0], text_tone))
        for part in parts[1:]:
            yield (Cell(" " * indent), Cell(part, text_tone))
        if first.hint and first.state in ("warn", "fail"):
            arrow = self._glyphs.plain("→ ")
            parts = self._wrapped(first.hint, indent + len(arrow))
            yield (Cell(" " * indent), Cell(arrow, "accent"), Cell(parts[0]))
            for part in parts[1:]:
                yield (Cell(" " * (indent + len(arrow))), Cell(part))

    def summary(self, checkups: Sequence[Checkup]) -> list[Cells]:
        verdicts = {checkup.verdict for checkup in checkups}
        worst: Verdict = next((verdict for verdict in reversed(_ORDER) if verdict in verdicts), "pass")
        return [(Cell(summary_text(checkups), TONES[worst]),)]

    def _wrapped(self, text: str, indent: int) -> list[str]:
        text = self._glyphs.plain(clean(text))
        if self._width is None or self._width - indent < _MIN_WRAP:
            return [text]
        return wrap(text, self._width - indent)


def _joined(results: Iterable[CheckResult], *, is_verbose: bool) -> list[list[CheckResult]]:
    """Results in order; those skipped one after another because of the same failure stand together."""
    groups: list[list[CheckResult]] = []
    for result in results:
        last = groups[-1][0] if groups else None
        if (
            not is_verbose
            and last is not None
            and last.state == result.state == "skip"
            and last.evidence == result.evidence
        ):
            groups[-1].append(result)
        else:
            groups.append([result])
    return groups


def _seconds(took_ms: int) -> str:
    return f"{took_ms} ms" if took_ms < 950 else f"{took_ms / 1000:.1f} s"
