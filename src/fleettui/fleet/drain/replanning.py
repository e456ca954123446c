"""Another target for a copy whose planned one is none any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.decide.drain.progress import NextStep
from fleettui.model.drain import CLASS_WORDS, CopyState
from fleettui.model.record import replace

if TYPE_CHECKING:
    from fleettui.fleet.drain.board import Key
    from fleettui.fleet.drain.worker import DrainWorker

PLANS = 5
"""How often a target is looked for before the copy is given up."""
PLANS_AFTER_FAILURE = 2
"""Once a target failed: a machine whose answer is late this moment is none, and one more look is enough."""


async def plan_again(worker: DrainWorker, key: Key, step: NextStep) -> None:
    """Look for another target; one that failed for this copy, or is stopped, is left out.

    A fleet at work changes every second: that there is none is believed after several looks. A copy that
    was to be moved is never let go for want of a target, whatever classes the operator forced: his word was
    for the lines that he saw.
    """
    board, options = worker.board, worker.drain.options
    before, progress = board.lines[key], board.copies[key]
    looks = PLANS_AFTER_FAILURE if progress.failures else PLANS
    is_last = board.plans.get(key, 0) + 1 >= looks
    line = await worker.room.plan_copy(progress.copy, options, board.failed.get(key, set()))
    if is_last and line.drain_class == "covered":
        line = replace(line, drain_class="cannot", text="no other machine keeps it resident")
    if line.is_lost and not is_last:
        line = replace(before, target=None, text=line.text)
    elif line.is_lost and line.drain_class in options.forced:
        why = f"{CLASS_WORDS[line.drain_class].lower()} by now: {line.text}"
        text = f"{why}; it was to be moved: a new start lets it go" if not progress.failures else why
        state: CopyState = "failed" if progress.failures else "blocked"
        await worker.end_copy(key, NextStep("end", state, "; ".join([*progress.failures, text])))
        return
    board.plan_anew(key, line)
    if line.drain_class == "covered" or line.target is None:
        board.hold(key, "pending", step.text or line.text)
    target = "" if line.target is None else line.target.machine
    result = line.result if target or line.is_lost else f"no target now: {line.text}"
    worker.room.write(worker.entry("planned", key[3], target, result.strip()))
    worker.poke()
