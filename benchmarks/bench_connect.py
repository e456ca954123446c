"""Does the screen stutter while a large fleet connects? 256 machines of the light server."""

from __future__ import annotations

import argparse
import json
import sys

from fleets import HERE, light_fleet, temporary_state, wait_until_quiet
from measure import Report, clean_environment, percentile, run_process


def measure_connect(report: Report, machines: int, repeat: int) -> None:
    """Connect the whole collector to `machines`; keep the run with the least lag."""
    best: dict[str, object] | None = None
    with light_fleet(machines) as fleet, temporary_state() as home:
        for _ in range(repeat):
            wait_until_quiet()
            command = [sys.executable, str(HERE / "client.py"), fleet.machines_dir]
            run = run_process(command, clean_environment(HOME=home))
            if run.exit_code:
                raise SystemExit(run.stderr.decode(errors="replace"))
            result = json.loads(run.stdout)
            result["p99_s"] = percentile(result["connect_lags_s"], 0.99)
            if best is None or result["p99_s"] < best["p99_s"]:
                best = result
    assert best is not None
    lags, seconds = best["connect_lags_s"], best["connect_s"]
    cpu_s, offline, errors = best["connect_cpu_s"], best["offline"], best["errors"]
    assert isinstance(errors, list)
    assert isinstance(lags, list)
    assert isinstance(seconds, float)
    assert isinstance(cpu_s, float)
    report.add(
        f"event loop lag p99, {machines} connect",
        percentile(lags, 0.99) * 1e3,
        "ms",
        50,
        f"p50 {percentile(lags, 0.5) * 1e3:.1f}, max {lags[-1] * 1e3:.0f} ms",
    )
    report.add(
        f"{machines} machines connected and read once",
        seconds,
        "s wall",
        None,
        f"{offline} did not answer {errors[:1] or ''}".rstrip(),
    )
    report.add("CPU per machine to connect and read once", cpu_s / machines * 1e3, "ms")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    report = Report("Connecting (light server in another process)")
    measure_connect(report, options.machines, options.repeat)
    report.finish()


if __name__ == "__main__":
    main()
