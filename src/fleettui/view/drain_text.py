"""The preview of a drain as text: a line for each copy, what becomes of it and why."""

from __future__ import annotations

from fleettui.model.clock import duration_words
from fleettui.model.drain import (
    CLASS_WORDS,
    LOADING_CLASSES,
    DrainClass,
    DrainOptions,
    DrainPlan,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.route import RejectedMachine, RouteCandidate
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.placement_text import cut_lines, page_width, wrapped_lines
from fleettui.view.route_text import eviction_text
from fleettui.view.text import cell_width, clean, clip, wrap
from fleettui.view.units import DASH, bytes_gib, count, gib_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLASS_TONES: dict[DrainClass, Tone] = {
    "covered": "good",
    "move": "good",
    "move_evicts": "warn",
    "degraded": "warn",
    "pull": "warn",
    "last_copy": "bad",
    "cannot": "bad",
    "unmanaged": "bad",
}
CLASS_WIDTH = max(map(len, CLASS_WORDS.values()))
NAME_MAX = 26
_GAP = "  "
_REASONS_SHOWN = 3
"""Machines whose reasons are told beside a copy that nobody takes; of the others it is counted."""
_LEAST_DETAIL = 34
"""Columns beside the names; where there are fewer, details stand below them."""
_INDENT = 4
_PLAIN: Tone = "plain"
_DIM: Tone = "dim"
_GIB = 1 << 30


def preview_lines(
    plan: DrainPlan,
    reason: str = "",
    now: float | None = None,
    width: int | None = None,
    glyphs: Glyphs = UNICODE,
) -> list[Cells]:
    """The whole preview of one machine. Nothing is cut that matters: long lines go on below."""
    total = page_width(width)
    lines = wrapped_lines(headline(plan, reason), total, "strong")
    lines += _facts(plan, now, total)
    if plan.copies:
        lines += _copy_lines(plan.copies, total)
    return cut_lines(lines, total, glyphs)


def headline(plan: DrainPlan, reason: str = "") -> str:
    """`drain ada "PSU swap"  5 copies, 66 GiB to load, ~50 s, targets bora (1) cleo (1)`."""
    name = clean(plan.machine) + (f' "{clean(reason)}"' if reason else "")
    if plan.problem:
        return f"drain {name}  not known what is loaded: {clean(plan.problem)}"
    if not plan.copies:
        return f"drain {name}  nothing is loaded: drained at once"
    parts = [count(len(plan.copies), "copy", "copies")]
    if plan.of_class(*LOADING_CLASSES):
        if plan.load_bytes:
            parts.append(f"{whole_gib(plan.load_bytes)} to load")
        parts.append(seconds_text(plan.seconds))
        targets = " ".join(f"{clean(target)} ({number})" for target, number in sorted(plan.targets.items()))
        parts.append(f"targets {targets}")
    else:
        parts.append("nothing to load")
    return f"drain {name}  {', '.join(parts)}"


def _facts(plan: DrainPlan, now: float | None, total: int) -> list[Cells]:
    """What the operator has to know before any line: what is lost, who is no target, how old the data is."""
    lines: list[Cells] = []
    lost = [clean(line.copy.name) for line in plan.copies if line.is_lost]
    if lost:
        word = "copy ends" if len(lost) == 1 else "copies end"
        text = f"{len(lost)} {word} with no resident copy anywhere: {', '.join(lost)}"
        lines += wrapped_lines(text, total, "bad")
    if plan.evicted_last:
        lines += wrapped_lines(evicted_text(plan.evicted_last), total, "warn")
    if plan.excluded:
        lines += wrapped_lines(f"excluded: {excluded_text(plan.excluded)}", total, "dim")
    notes = []
    if not plan.is_exact:
        notes.append("the best order found, not every one was tried")
    if now is not None and plan.taken_at:
        notes.append(f"data {max(0.0, now - plan.taken_at):.1f} s old")
    if notes:
        lines += wrapped_lines(", ".join(notes), total, "dim")
    return lines


def evicted_text(names: Iterable[str]) -> str:
    """What other machines lose by the loads."""
    return f"evicted for it, and then resident nowhere: {', '.join(map(clean, names))}"


def excluded_text(excluded: Iterable[RejectedMachine]) -> str:
    """`dora maintenance "fan swap" by mia since 12:03; enno stale 41 s > 4 s`."""
    return "; ".join(f"{clean(item.machine)} {clean(item.text)}" for item in excluded)


def _copy_lines(copies: Sequence[PlannedCopy], total: int) -> list[Cells]:
    """Class, model and details in columns; details that do not fit go on below themselves."""
    name_width = min(NAME_MAX, max(cell_width(copy_name(line)) for line in copies))
    start = 1 + CLASS_WIDTH + len(_GAP) + name_width + len(_GAP)
    is_beside = total - start >= _LEAST_DETAIL
    if not is_beside:
        start = _INDENT
    room = total - start
    rows = [_details(line) for line in copies]
    widths = _column_widths([columns for columns, _ in rows])
    is_wide = is_beside and sum(widths) + len(_GAP) * (len(widths) - 1) <= room
    lines: list[Cells] = []
    for line, (columns, words) in zip(copies, rows, strict=True):
        name = clip(copy_name(line), name_width)
        head: Cells = (
            Cell(f" {CLASS_WORDS[line.drain_class]:<{CLASS_WIDTH}}{_GAP}", CLASS_TONES[line.drain_class]),
            Cell(name + " " * (name_width - cell_width(name)) + _GAP, "strong"),
        )
        if not is_beside:
            lines.append(head)
        below = [(text, _PLAIN) for text in _figures(columns, widths, room, is_wide=is_wide)]
        below += [(part, _DIM) for text in words for part in wrap(text, room)]
        for number, (text, tone) in enumerate(below or [("", _PLAIN)]):
            cell = Cell(text, tone)
            is_first = is_beside and number == 0
            lines.append((*head, cell) if is_first else (Cell(" " * start), cell))
    return lines


def _figures(columns: list[str], widths: list[int], room: int, *, is_wide: bool) -> list[str]:
    """One line where all copies' fit, else as many as it takes, broken between figures."""
    if not columns:
        return []
    if is_wide:
        used = [(part, size) for part, size in zip(columns, widths, strict=True) if size]
        padded = (part + " " * (size - cell_width(part)) for part, size in used)
        return [_GAP.join(padded).rstrip()]
    # Where it goes and how long that takes stand beside the name; the figures behind it below.
    lines = [f"{columns[0]}{_GAP}{columns[-1]}"]
    line = ""
    for part in filter(None, columns[1:-1]):
        joined = f"{line}{_GAP}{part}" if line else part
        if line and cell_width(joined) > room:
            lines.append(line)
            joined = part
        line = joined
    return [piece for text in (*lines, line) if text for piece in _broken(text, room)]


def _broken(text: str, room: int) -> list[str]:
    return [text] if cell_width(text) <= room else wrap(text, room)


def _column_widths(rows: list[list[str]]) -> list[int]:
    filled = [row for row in rows if row]
    return [max(map(cell_width, column)) for column in zip(*filled, strict=True)] if filled else []


def copy_name(line: PlannedCopy) -> str:
    """`llama3.1:70b`; of an engine that is not Ollama with its kind and port."""
    return source_name(line.copy)


def source_name(copy: SourceCopy) -> str:
    """`vllm qwen2-vl :8001`."""
    if copy.engine in ("ollama", "process"):
        return clean(copy.name)
    return clean(f"{copy.engine} {copy.name} :{copy.port}")


def _details(line: PlannedCopy) -> tuple[list[str], list[str]]:
    """Columns of a copy that is loaded elsewhere (where, need, free, context, seconds), then sentences."""
    target = line.target
    columns = []
    if target is not None and line.drain_class in LOADING_CLASSES:
        columns = [
            where_text(target),
            _need_text(target),
            _free_text(target),
            _context_text(line),
            seconds_text(target.eta_s),
        ]
    return columns, line_sentences(line)


def where_text(target: RouteCandidate) -> str:
    """`-> bora GPU 0+1`."""
    cards = "+".join(map(str, target.gpus))
    if not cards and target.free_gpu is not None:
        cards = str(target.free_gpu)
    kind = "" if target.engine == "ollama" else f" {ENGINE_TITLES[target.engine]}"
    return f"-> {clean(target.machine)}{kind}{f' GPU {cards}' if cards else ''}"


def _need_text(target: RouteCandidate) -> str:
    if target.need is None:
        return f"need {DASH}"
    return f"need {target.need.mib / 1024:.1f} ({clean(target.need.basis)})"


def _free_text(target: RouteCandidate) -> str:
    text = f"free {gib_text(target.free_mib)}"
    return f"{text} + {eviction_text(target)}" if target.evicts else text


def _context_text(line: PlannedCopy) -> str:
    """`ctx 32768 -> 4096 (!)`: there it is smaller."""
    here, there = line.copy.context, line.context_there
    if isinstance(here, Unknown) and isinstance(there, Unknown):
        return ""
    return f"ctx {_tokens(here)} -> {_tokens(there)}{' (!)' if is_context_less(line) else ''}"


def is_context_less(line: PlannedCopy) -> bool:
    """It is known to have fewer tokens there than here."""
    here, there = line.copy.context, line.context_there
    return not isinstance(here, Unknown) and not isinstance(there, Unknown) and there < here


def _tokens(value: Maybe[int]) -> str:
    return DASH if isinstance(value, Unknown) else str(value)


def seconds_text(seconds: Maybe[float]) -> str:
    """`~29 s`, `~12 min`; a dash where nobody can tell."""
    if isinstance(seconds, Unknown):
        return f"~{DASH} s"
    return f"~{seconds:.0f} s" if seconds < 600 else f"~{duration_words(seconds)}"


def line_sentences(line: PlannedCopy) -> list[str]:
    """What is to be said of a copy beyond its figures."""
    words = []
    target = line.target
    if line.text:
        words.append(clean(line.text))
    elif line.drain_class == "covered" and target is not None:
        words.append(f"also on {clean(target.machine)}")
    if line.follows:
        words.append(f"once it is moved there from {clean(line.follows)}")
    if line.drain_class == "covered" and is_context_less(line):
        words.append(_context_text(line))
    if line.drain_class == "pull" and not line.text:
        words.append(f"pulls {bytes_gib(line.pull_bytes)} GiB first")
    if line.num_ctx is not None:
        words.append(f"loaded with num_ctx {line.num_ctx}")
    if line.keep and "keep" not in line.text:
        words.append(f"the catalog keeps {line.keep} resident")
    sentences = ["; ".join(words)] if words else []
    is_nowhere = all("not_installed" in item.codes for item in line.rejected)
    if line.target is None and not (is_nowhere and line.text):
        sentences.append(rejected_text(line.rejected))
    if line.cold_on and not line.text:
        sentences.append(f"will be cold on {', '.join(map(clean, line.cold_on))}")
    return sentences


def rejected_text(rejected: Sequence[RejectedMachine]) -> str:
    """`bora no_fit …; cleo stale …; not_installed on 4 machines`: those that come closest first."""
    closest = [item for item in rejected if "not_installed" not in item.codes]
    told = [f"{clean(item.machine)} {clean(item.text)}" for item in closest[:_REASONS_SHOWN]]
    codes: dict[str, list[str]] = {}
    for item in [*closest[_REASONS_SHOWN:], *(item for item in rejected if "not_installed" in item.codes)]:
        code = "not_installed" if "not_installed" in item.codes else (*item.codes, "no target")[0]
        codes.setdefault(code, []).append(clean(item.machine))
    for code, names in codes.items():
        many = len(names) > _REASONS_SHOWN
        told.append(f"{code} on {count(len(names), 'machine') if many else ', '.join(names)}")
    return "; ".join(told)


def whole_gib(size: int) -> str:
    """`66 GiB`, `4.1 GiB`."""
    gib = size / _GIB
    return f"{gib:.0f} GiB" if gib >= 9.95 else f"{gib:.1f} GiB"


def refused_text(lines: Iterable[PlannedCopy]) -> str:
    """`2 LAST COPY (gpt-oss:120b, qwen3:32b), 1 UNMANAGED (vllm qwen2-vl :8001)`."""
    by_class: dict[DrainClass, list[str]] = {}
    for line in lines:
        by_class.setdefault(line.drain_class, []).append(copy_name(line))
    return ", ".join(
        f"{len(names)} {CLASS_WORDS[name]} ({', '.join(names)})" for name, names in by_class.items()
    )


def staying_lines(plan: DrainPlan, options: DrainOptions) -> tuple[PlannedCopy, ...]:
    """Copies that nothing is done about with these options: skipped, or worse off elsewhere than allowed."""
    unwanted = {
        *(() if options.accept_degraded else ("degraded",)),
        *(() if options.allow_pull else ("pull",)),
        "unmanaged",
    }
    return tuple(
        [line for line in plan.copies if line.drain_class in unwanted or options.skips_copy(line.copy)]
    )


def consequence_text(plan: DrainPlan, options: DrainOptions) -> str:
    """What typing the name does: `ada takes no requests from now on; 3 copies are moved, 1 is unloaded`."""
    if not plan.copies:
        return f"{clean(plan.machine)} takes no requests from now on; nothing is loaded there"
    staying = staying_lines(plan, options)
    going = [line for line in plan.copies if line not in staying]
    moved = sum(line.drain_class in LOADING_CLASSES for line in going)
    covered = sum(line.drain_class == "covered" for line in going)
    lost, stay = sum(line.is_lost for line in going), len(staying)
    parts = [
        f"{count(moved, 'copy', 'copies')} moved" if moved else "",
        f"{covered} unloaded because others serve {'it' if covered == 1 else 'them'}" if covered else "",
        f"{lost} unloaded and gone" if lost else "",
        f"{stay} left, which {'blocks' if stay == 1 else 'block'} the drain" if stay else "",
    ]
    told = ", ".join(part for part in parts if part)
    return f"{clean(plan.machine)} takes no requests from now on; {told}"
