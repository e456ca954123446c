"""The dashboard that bench_keys.py presses keys on: every machine expanded, figures that stand still.

python keys_child.py MACHINES CARDS
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "tests/tui")]


def main() -> None:
    """Command line."""
    from slow_child import full_machine  # type: ignore[import-not-found]  # a folder of tests
    from tui_fleet import Clock, FakeService, fleet

    from fleettui.tui.app import FleetApp

    machines, cards = (int(text) for text in sys.argv[1:3])
    service = FakeService(fleet(tuple(full_machine(number, cards) for number in range(machines))))
    FleetApp(service, clock=Clock()).run()


if __name__ == "__main__":
    main()
