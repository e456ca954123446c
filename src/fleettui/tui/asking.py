"""Asking for one line of text on any screen that has a Prompt and a Footer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.prompt import Prompt, Question


def ask_on(screen: Screen[Any], question: Question) -> None:
    """Let the operator type a line; the footer waits below. While another is being typed that goes on."""
    prompt, before = screen.query_one(Prompt), screen.focused
    on_cancel = question.on_cancel

    def end() -> None:
        screen.query_one(Footer).display = True
        if isinstance(before, Widget) and before.is_attached:
            screen.set_focus(before)  # at once: the next key may be there already

    def answered(text: str) -> None:
        end()
        question.on_answer(text)

    def cancelled() -> None:
        end()
        if on_cancel is not None:
            on_cancel()

    if prompt.question is not None:
        screen.set_focus(prompt.input)  # a click may have taken it away
        return
    screen.query_one(Footer).display = False
    prompt.ask(replace(question, on_answer=answered, on_cancel=cancelled))
