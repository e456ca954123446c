"""Run all benchmarks and print one table, each figure beside its goal.

    python benchmarks/run.py [route] [decide] [placement] [drain] [metrics] [connect] [collector] [steady]
        [paint] [keys] [slow]

About 8 minutes on a quiet machine with two cores. Exit code 1 when a benchmark could not run; a missed goal
is said in the table and fails nothing, since a busy machine misses goals too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Report, environment_lines, load_report, table_lines

HERE = Path(__file__).resolve().parent
NAMES = (
    "route", "decide", "placement", "drain", "metrics", "connect", "collector", "steady", "paint", "keys",
    "slow",
)  # fmt: skip


def run_one(name: str, folder: Path) -> Report | None:
    """Run one benchmark in a process of its own; None when it failed."""
    result = folder / f"{name}.json"
    started = time.monotonic()
    print(f"bench: {name} …", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, str(HERE / f"bench_{name}.py")],
        env={**os.environ, "BENCH_RESULT": str(result)},
        check=False,
    )
    print(f"bench: {name} took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return load_report(result) if done.returncode == 0 and result.exists() else None


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    head = environment_lines()
    with tempfile.TemporaryDirectory() as folder:
        reports = {name: run_one(name, Path(folder)) for name in names}
    done = [report for report in reports.values() if report is not None]
    print("\n".join([*head, "", *table_lines(done)]), flush=True)
    failed = [name for name, report in reports.items() if report is None]
    if failed:
        raise SystemExit(f"bench: could not run {', '.join(failed)}; the reason stands above")


if __name__ == "__main__":
    main()
