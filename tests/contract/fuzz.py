"""Many damaged answers for every reader of probes/, the frame splitter and the HTTP reader: `make fuzz`.

    python tests/contract/fuzz.py [--seconds 600] [--examples 20000] [--jobs 2] [--only TEXT] [--seed N]

Each target gets its share of the time, at most so many examples. A failure is made as small as it gets and
printed; exit code 1. What is found becomes a fix and an `example` or sample of a test.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from damage import all_samples, apply_faults, given_for
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from parser_table import EXIT_CODES, READERS, Given, Reader, samples_of
from readings import check_reader
from streams import STREAMS

ROUND, QUICK_ROUND = 200, 1800
"""Examples between two looks at the clock, drawn by hypothesis and without it."""
SLOW_S = 0.25
"""CPU for three texts of at most 6 KB each, the checks included: what takes longer is told."""

settings.register_profile(
    "fuzz",
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
    print_blob=False,
)


@dataclass
class Outcome:
    """What came of one target."""

    name: str
    examples: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def target_names(only: str) -> list[str]:
    """Names of what is tried."""
    names = [*STREAMS, *(reader.name for reader in READERS)]
    return [name for name in names if only in name]


def make_check(name: str, outcome: Outcome) -> tuple[st.SearchStrategy[object], Callable[[object], None]]:
    """Inputs and check of a target; the check counts and times."""
    if name in STREAMS:
        strategy, check = STREAMS[name]
    else:
        reader: Reader = next(item for item in READERS if item.name == name)
        strategy = given_for(reader)

        def check(inputs: object) -> None:
            assert isinstance(inputs, Given)
            check_reader(reader, inputs)

    def timed(inputs: object) -> None:
        started = time.process_time()
        check(inputs)
        outcome.slowest_s = max(outcome.slowest_s, time.process_time() - started)
        outcome.examples += 1

    return strategy, timed


def try_quickly(name: str, check: Callable[[object], None], number: int, outcome: Outcome) -> None:
    """The same damage drawn without hypothesis, ten times as fast; a failure is not made smaller."""
    rng = random.Random(f"{name} {number}")
    reader = next(item for item in READERS if item.name == name)
    own, everybody = samples_of(reader), all_samples()

    def text() -> bytes:
        data = rng.choice(own if rng.random() < 0.85 else everybody)
        faults = [tuple(rng.randrange(1 << 16) for _ in range(4)) for _ in range(rng.randint(0, 6))]
        return apply_faults(data, faults)  # type: ignore[arg-type]

    for _ in range(QUICK_ROUND):
        inputs = Given(text(), text(), text(), rng.choice(EXIT_CODES), rng.randrange(1000))
        try:
            check(inputs)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is what we look for
            lines = traceback.format_exception(error)
            outcome.failures.append(f"{inputs!r}\n{''.join(lines)[-1500:]}")
            return


def fuzz_one(name: str, seconds: float, examples: int, first_seed: int) -> Outcome:
    """Rounds until the time or the examples are used up, or something fails."""
    outcome = Outcome(name)
    strategy, check = make_check(name, outcome)
    started = time.perf_counter()
    number = first_seed
    while time.perf_counter() - started < seconds and outcome.examples < examples and not outcome.failures:
        if name not in STREAMS:
            try_quickly(name, check, number, outcome)
        run = settings(settings.get_profile("fuzz"), max_examples=ROUND)
        number += 1
        try:
            run(seed(number)(given(strategy)(check)))()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            lines = traceback.format_exception(error)
            outcome.failures.append(f"seed {number}: {error!r}\n{''.join(lines)[-2500:]}")
    outcome.seconds = time.perf_counter() - started
    return outcome


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="wall time of all targets together")
    parser.add_argument("--examples", type=int, default=20_000, help="at most, for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="targets with this text in their name")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="the same seeds give the same inputs"
    )
    options = parser.parse_args()
    names = target_names(options.only)
    share_s = options.seconds * options.jobs / max(1, len(names))
    print(f"{len(names)} targets, {share_s:.1f} s each, seed {options.seed}", flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(fuzz_one, name, share_s, options.examples, options.seed) for name in names]
        outcomes = [item.result() for item in waiting]
    for item in sorted(outcomes, key=lambda item: item.name):
        word = "FAILED" if item.failures else "slow" if item.slowest_s > SLOW_S else "ok"
        print(
            f"{item.name:<44} {item.examples:>7} examples  {item.seconds:6.1f} s  "
            f"slowest {item.slowest_s * 1e3:7.1f} ms  {word}"
        )
    for item in outcomes:
        for failure in item.failures:
            print(f"\n--- {item.name}\n{failure}")
    failed = [item.name for item in outcomes if item.failures]
    total = sum(item.examples for item in outcomes)
    print(f"fuzz: {total} examples, {len(failed)} of {len(names)} targets failed{': ' if failed else ''}"
          f"{', '.join(failed)}")  # fmt: skip
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
