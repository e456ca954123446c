"""What a tool for language models is, and a call of it that has no answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from fleettui.model.record import dataclass

if TYPE_CHECKING:
    from fleettui.serve.action import Action
    from fleettui.serve.agent_arguments import Argument
    from fleettui.serve.door import Door
    from fleettui.serve.permission import Caller
    from fleettui.view.json_values import Document

CONTEXT_MOST = 1 << 26

Handler = Callable[["Door", "Caller", Mapping[str, Any]], Awaitable["Document"]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    title: str
    about: str
    """For the model: what it answers, and when to ask it."""
    handler: Handler
    """Raises ToolError or ApiError."""
    lines: Callable[[Document], list[str]]
    """The document, cleaned, for who reads text."""
    arguments: tuple[Argument, ...] = ()
    action: Action | None = None
    """What it changes, as the API does by POST; None: it only looks."""
    is_destructive: bool = False
    """It may end what serves now."""
    is_idempotent: bool = True
    """Called twice with the same arguments it changes no more than once."""


class ToolError(Exception):
    """The call has no answer: what failed, why, what to do next, and names that may be meant."""

    def __init__(self, code: str, what: str, why: str, hint: str, document: Document | None = None) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.hint = hint
        self.document = document
        """What is known all the same."""
