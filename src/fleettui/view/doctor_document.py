"""`machines doctor --json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleettui.model.doctor import Checkup


def doctor_document(checkups: Sequence[Checkup], notices: Sequence[str] = ()) -> dict[str, Any]:
    """The document, schema 1; `notices`: what is odd and belongs to no machine."""
    return {
        "schema": 1,
        "machines": [
            {
                "name": checkup.name,
                "verdict": checkup.verdict,
                "checks": [
                    {
                        "id": result.id,
                        "title": result.title,
                        "state": result.state,
                        "evidence": result.evidence,
                        "hint": result.hint,
                        "took_ms": result.took_ms,
                    }
                    for result in checkup.results
                ],
            }
            for checkup in checkups
        ],
        "notices": list(notices),
    }
