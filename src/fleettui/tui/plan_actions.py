"""Actions of the Plan screen."""

from __future__ import annotations

from fleettui.tui.action import Action

PLAN_ACTIONS: tuple[Action, ...] = (
    Action(
        "clear_what_if",
        "escape",
        "Esc",
        "as it is",
        "Plan with all machines and GPUs as they are again",
        ("plan",),
        rank=2,
    ),
    Action(
        "toggle_gpu",
        "space",
        "Space",
        "without GPU",
        "What if the GPU under the cursor were not there, or a disabled one were",
        ("plan",),
        rank=4,
        command="what-if-gpu",
    ),
    Action(
        "toggle_machine",
        "w",
        "w",
        "without machine",
        "What if the machine under the cursor were not there, or one in maintenance were back",
        ("plan",),
        rank=4,
        command="what-if",
        needs_machine=True,
    ),
    Action(
        "toggle_optimal",
        "o",
        "o",
        "optimal",
        "The plan with the most copies in order of priority, or the greedy one, which is easier to follow",
        ("plan",),
        rank=6,
        command="optimal",
    ),
    Action(
        "show_changes",
        "D",
        "D",
        "changes",
        "What would have to be loaded and unloaded from what is loaded now, or the plan again",
        ("plan",),
        rank=6,
        command="diff",
    ),
    Action(
        "show_losses",
        "n",
        "n",
        "N-1",
        "What the loss of each machine would cost, or the plan again",
        ("plan",),
        rank=6,
        command="n-1",
    ),
    Action(
        "export_plan",
        "e",
        "e",
        "export",
        "Write the plan to a file: .json, .yaml, or the table as text",
        ("plan",),
        rank=8,
        command="export",
        takes="[FILE]",
    ),
)
