"""Meters and the printed table of the benchmarks.

CPU is user + system of a process and the children it waited for. Runs that are compared are
interleaved, because CPU figures of a shared machine drift between minutes while ratios hold.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


# -- one process from start to end ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process."""

    wall_s: float
    cpu_s: float
    """User + system, with the children it waited for."""
    peak_rss_mib: float
    exit_code: int
    stdout: bytes
    stderr: bytes


def run_process(command: Sequence[str], env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Run:
    """Run a command to its end; its rusage comes from the kernel, exact to the microsecond."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(stdin)
    process.stdin.close()
    # Small outputs: both pipes fit their buffers.
    stdout, stderr = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    return Run(
        wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode, stdout, stderr
    )


def interleave(tasks: Mapping[str, Callable[[], Run]], repeat: int) -> dict[str, list[Run]]:
    """Run each task in turn, `repeat` rounds, so that what slows the machine slows all of them."""
    runs: dict[str, list[Run]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            runs[name].append(task())
    return runs


@dataclass(frozen=True, slots=True)
class Spread:
    """Least and middle of repeated figures, seconds."""

    least: float
    median: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(min(values), statistics.median(values))


def walls(runs: Sequence[Run]) -> Spread:
    """Wall seconds of repeated runs."""
    return Spread.of([run.wall_s for run in runs])


def cpus(runs: Sequence[Run]) -> Spread:
    """CPU seconds of repeated runs."""
    return Spread.of([run.cpu_s for run in runs])


# -- processes that stay -------------------------------------------------------------------------------


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process, its living descendants, and the dead ones they waited for."""
    root = psutil.Process(pid)
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def process_cpu_s(pid: int) -> float:
    """CPU seconds of one living process with one thread, exact to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def threads_cpu_s(pid: int) -> float:
    """CPU seconds of the living threads of one process, exact to the nanosecond."""
    stats = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(text.split()[0]) for text in stats) / 1e9


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a process tree, MiB."""

    rss_mib: float
    pss_mib: float
    """Shared pages counted once for all that share them."""


def tree_memory(pid: int) -> Memory:
    """RSS and PSS of a process and its descendants."""
    root = psutil.Process(pid)
    rss = pss = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            full = process.memory_full_info()
        except psutil.Error:
            continue
        rss += full.rss
        pss += getattr(full, "pss", full.rss)
    return Memory(rss / 2**20, pss / 2**20)


@dataclass(slots=True)
class Window:
    """What a process tree used between two moments."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    other_cores: float = 0.0
    """Cores that everything else on the machine used meanwhile; above 0.3 distrust wall figures."""

    @property
    def core_share(self) -> float:
        """Share of one core, 1.0 is all of it."""
        return self.cpu_s / self.wall_s if self.wall_s else 0.0


def machine_busy_s() -> float:
    """CPU seconds used by everything since boot."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    numbers = [int(word) for word in fields]
    # idle and iowait are not work; guest time is in user already.
    return (sum(numbers[:3]) + sum(numbers[5:8])) / CLOCK_TICKS


@contextmanager
def watch(pid: int, known: Sequence[int] = ()) -> Iterator[Window]:
    """What a process tree uses during the block. `known`: other trees of this benchmark."""
    window = Window()
    busy, mine = machine_busy_s(), tree_cpu_s(pid)
    rest = sum(map(tree_cpu_s, known))
    started = time.perf_counter()
    yield window
    window.wall_s = time.perf_counter() - started
    window.cpu_s = tree_cpu_s(pid) - mine
    elsewhere = machine_busy_s() - busy - window.cpu_s - (sum(map(tree_cpu_s, known)) - rest)
    window.other_cores = max(0.0, elsewhere / window.wall_s)


# -- figures -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what it should be."""

    name: str
    value: float | None
    """None: could not be measured here; `note` says why."""
    unit: str
    at_most: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, or empty where there is no goal."""
        if self.at_most is None or self.value is None:
            return ""
        return "ok" if self.value <= self.at_most else "MISSED"


@dataclass(slots=True)
class Report:
    """Figures of one benchmark, printed as plain text."""

    title: str
    figures: list[Figure] = field(default_factory=list)

    def add(
        self, name: str, value: float | None, unit: str, at_most: float | None = None, note: str = ""
    ) -> None:
        """Append a figure."""
        self.figures.append(Figure(name, value, unit, at_most, note))

    def finish(self) -> None:
        """Print the table, or hand the figures to the run that asked for them."""
        if path := os.environ.get("BENCH_RESULT"):
            document = {"title": self.title, "figures": [asdict(figure) for figure in self.figures]}
            Path(path).write_text(json.dumps(document), encoding="utf-8")
        else:
            print("\n".join([*environment_lines(), "", *table_lines([self])]), flush=True)


def load_report(path: Path) -> Report:
    """What a benchmark handed over."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Report(document["title"], [Figure(**figure) for figure in document["figures"]])


def table_lines(reports: Sequence[Report]) -> list[str]:
    """One table: figure, unit, goal, verdict, note; a heading for each report."""
    rows = {
        id(figure): (
            figure.name,
            number(figure.value),
            figure.unit,
            "" if figure.at_most is None else f"<= {number(figure.at_most)}",
            figure.verdict,
            figure.note,
        )
        for report in reports
        for figure in report.figures
    }
    widths = [max((len(row[column]) for row in rows.values()), default=0) for column in range(5)]
    lines = []
    for report in reports:
        lines.append(report.title)
        for figure in report.figures:
            name, value, unit, goal, verdict, note = rows[id(figure)]
            lines.append(
                f"  {name:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {goal:<{widths[3]}}"
                f"  {verdict:<{widths[4]}}  {note}".rstrip()
            )
    return lines


def number(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return "–"
    if value == 0 or value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.095 else f"{value:.4f}"


def percentile(values: Sequence[float], share: float) -> float:
    """Value below which `share` (0 to 1) of the sorted values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def environment_lines() -> list[str]:
    """What machine this is and how busy it was, for the head of a report."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("asyncssh", "textual", "pydantic", "httpx"))
    return [
        f"{time.strftime('%Y-%m-%d %H:%M')}  {model}, {os.cpu_count()} cores, load average {load}",
        f"Python {platform.python_version()}, {libraries}, {ssh_version()}",
    ]


def ssh_version() -> str:
    """`OpenSSH_…` of this machine's client."""
    try:
        done = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False, timeout=10)
    except OSError:
        return "no ssh"
    return done.stderr.partition(",")[0].strip()


def clean_environment(**more: str) -> dict[str, str]:
    """Environment for measured processes: this checkout, no agent and no settings of whoever runs them."""
    dropped = ("SSH_AUTH_SOCK", "NO_COLOR", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE", "TMUX")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith(("FLEETTUI_", "XDG_", "TEXTUAL"))
    }
    terminal = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
    return {**kept, **terminal, "PYTHONPATH": str(ROOT / "src"), **more}
