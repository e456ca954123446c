"""Bytes written to the terminal per refresh: 24 machines, a quarter of the rows changed (paint_bytes.py)."""

from __future__ import annotations

import json
import sys

from fleets import HERE
from measure import Report, clean_environment, run_process

GOAL_KB = 5.0


def main() -> None:
    """Run paint_bytes.py and put its figures beside the goal."""
    run = run_process([sys.executable, str(HERE / "paint_bytes.py"), "--json"], clean_environment())
    if run.exit_code:
        raise SystemExit(run.stderr.decode(errors="replace"))
    report = Report("Painting (160x50, 24 machines)")
    for share, result in json.loads(run.stdout).items():
        goal = GOAL_KB if share == "a quarter" else None
        note = f"{result['cpu_ms']:.1f} ms CPU per refresh"
        report.add(f"{share} of the rows changed: written", result["bytes"] / 1000, "KB", goal, note)
    report.finish()


if __name__ == "__main__":
    main()
