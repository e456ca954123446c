"""`/metrics` of a running server beside its API; promtool, the example alerts, a real Prometheus."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from served import Served

from fleettui.demo.launcher import DemoFleet

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metrics.md"
RULES = ROOT / "docs" / "alerts" / "fleettui.rules.yml"
DASHBOARD = ROOT / "docs" / "grafana" / "fleettui.json"
WAIT_S = 90.0
"""For what a loaded computer takes long for."""
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

NOT_HERE = "prometheus is not installed: apt-get install prometheus (make does that where it may)"
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None, reason=NOT_HERE
)


def blocks(language: str) -> list[str]:
    """The fenced blocks of that language on the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def dashboard_queries() -> list[str]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def filled(query: str) -> str:
    """A query as Grafana sends it with all servers and machines chosen."""
    return query.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$machine", ".*")


def wait_for(what: Callable[[], Any], said: Callable[[], object]) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + WAIT_S
    while not (found := what()):
        assert time.monotonic() < deadline, said()
        time.sleep(0.2)
    return found


# -- the answer itself -----------------------------------------------------------------------------------


def scrape(served: Served) -> Samples:
    body = served.ask("/metrics").body.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(body)
        for sample in family.samples
    }


def test_both_forms_are_read_by_the_library(served: Served) -> None:
    plain = served.ask("/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    named = served.ask("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert named.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert named.headers["vary"] == "Accept, Accept-Encoding"
    packed = served.ask("/metrics", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    documents = (
        parse_text(plain.body.decode()),
        parse_openmetrics(named.body.decode()),
        parse_text(gzip.decompress(packed.body).decode()),
    )
    for families in documents:
        names = {sample.name for family in families for sample in family.samples}
        assert {"fleettui_machine_up", "fleettui_gpu_memory_free_bytes", "process_cpu_seconds_total"} <= names
    assert served.ask("/metrics", accept="x").status == 400


def test_decisions_are_counted_by_what_came_of_them(served: Served) -> None:
    def counted() -> dict[str, float]:
        found = scrape(served)
        return {labels[0][1]: value for (name, labels), value in found.items() if "decisions" in name}

    before = counted()
    assert before.keys() == {"routed", "none_eligible", "unknown_model", "no_telemetry"}
    served.ask("/api/route", model="llama3.1:70b")
    served.ask("/api/route", model="llama3.1:8b", min_free_vram="900")
    served.ask("/api/route", model="no-such-model")
    served.ask("/api/route", model="")  # no question at all
    more = {"routed": 1, "none_eligible": 1, "unknown_model": 1, "no_telemetry": 0}
    wanted = {outcome: before[outcome] + more[outcome] for outcome in before}
    wait_for(lambda: counted() == wanted, lambda: (before, counted()))


def numbers_of(infrastructure: Any) -> dict[tuple[str, ...], Any]:
    """What time does not move on a frozen fleet, as `/api/infrastructure` has it."""
    found: dict[tuple[str, ...], Any] = {}
    for machine in infrastructure["machines"]:
        name, told = machine["name"], machine["telemetry"]
        found["fleettui_machine_up", name] = int(machine["status"] == "online")
        found["fleettui_machine_memory_total_bytes", name] = told["ram_total_gb"]
        for gpu in told.get("gpu", ()):
            for part in ("total", "used", "free"):
                found[f"fleettui_gpu_memory_{part}_bytes", name, str(gpu["index"])] = gpu[f"vram_{part}_gb"]
            found["fleettui_gpu_fault", name, str(gpu["index"])] = int(gpu["fault"] is not None)
        for disk in told["disks"]:
            found["fleettui_disk_total_bytes", name, disk["mount"]] = disk["total_gb"]
        for copy in machine["loaded"]:
            found["fleettui_copy_vram_bytes", name, copy["engine"], copy["name"]] = copy["vram_gb"]
    return {key: value for key, value in found.items() if value is not None}


LABELS = ("machine", "gpu", "mount", "engine", "model")


def same_numbers(ask: Callable[[str], list[tuple[dict[str, str], float]]]) -> dict[tuple[str, ...], Any]:
    """The same by the samples of each name."""
    found = {}
    for name in (
        "fleettui_machine_up", "fleettui_machine_memory_total_bytes", "fleettui_gpu_memory_total_bytes",
        "fleettui_gpu_memory_used_bytes", "fleettui_gpu_memory_free_bytes", "fleettui_gpu_fault",
        "fleettui_disk_total_bytes", "fleettui_copy_vram_bytes",
    ):  # fmt: skip
        for labels, value in ask(name):
            key = (name, *(labels[label] for label in LABELS if label in labels))
            found[key] = round(value / 2**30, 1) if name.endswith("_bytes") else value
    return found


def test_the_numbers_are_those_of_the_api(served: Served) -> None:
    def ask(name: str) -> list[tuple[dict[str, str], float]]:
        return [(dict(labels), value) for (found, labels), value in samples.items() if found == name]

    def differing() -> dict[Any, Any]:
        wanted, told = numbers_of(served.json("/api/infrastructure")), same_numbers(ask)
        assert len(wanted) > 40
        return {key: (wanted.get(key), told.get(key)) for key in wanted.keys() | told.keys()
                if wanted.get(key) != told.get(key)}  # fmt: skip

    def agree() -> bool:
        nonlocal samples
        samples = scrape(served)
        return not differing()

    samples: Samples = {}
    wait_for(agree, differing)


# -- promtool --------------------------------------------------------------------------------------------


def promtool(*arguments: str, given: bytes = b"", folder: Path | None = None) -> str:
    """What it says; it must be content."""
    done = subprocess.run(
        ["promtool", *arguments], input=given, cwd=folder, capture_output=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


@needs_prometheus
def test_promtool_has_nothing_to_complain_of(served: Served) -> None:
    assert promtool("check", "metrics", given=served.ask("/metrics").body) == ""


@needs_prometheus
def test_the_example_alerts_alarm_for_what_they_should(tmp_path: Path) -> None:
    assert f"{RULES.read_text().count('- alert:')} rules found" in promtool("check", "rules", str(RULES))
    promtool("test", "rules", str(ROOT / "tests" / "fixtures" / "prometheus" / "alerts.yml"))
    shutil.copy(RULES, tmp_path)
    (tmp_path / "fleettui.token").touch()
    for text in blocks("yaml"):
        (tmp_path / "prometheus.yml").write_text(text)
        promtool("check", "config", "prometheus.yml", folder=tmp_path)


def test_each_alert_waits_and_none_is_about_a_machine_out_of_service() -> None:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    aside = "unless on (instance, machine) (fleettui_machine_out_of_service == 1)"
    for rule in group["rules"]:
        assert rule["for"], rule
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        if "$labels.machine" in str(rule["annotations"]):
            assert rule["expr"].endswith(aside), rule["alert"]


# -- Grafana ---------------------------------------------------------------------------------------------


def test_the_dashboard_leaves_the_data_source_to_who_imports_it() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    variables = {item["name"]: item for item in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        assert at["x"] + at["w"] <= 24
        places |= cells
        if panel["type"] != "row":
            for target in (panel, *panel["targets"]):
                assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    used = set(re.findall(r"\$(\w+)", " ".join(dashboard_queries())))
    assert used - {"__rate_interval"} <= variables.keys()


# -- a real Prometheus -----------------------------------------------------------------------------------


class Prometheus:
    """Scrapes two servers, one of them with a token, on a port of its own choice."""

    def __init__(self, folder: Path, near: Served, far: Served, token: Path) -> None:
        self.log = folder / "log"
        shutil.copy(RULES, folder)
        shutil.copy(token, folder / "fleettui.token")
        text, more = blocks("yaml")
        text = text.replace("127.0.0.1:3038", f"127.0.0.1:{near.port}")
        text = text.replace("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s")
        more = more.replace("jump.example:3038", f"127.0.0.1:{far.port}").replace("https", "http")
        text += more.partition("scrape_configs:\n")[2].replace("job_name: fleettui", "job_name: far")
        (folder / "prometheus.yml").write_text(text)
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                 "--web.listen-address=127.0.0.1:0"],
                cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder)},
                stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            )  # fmt: skip
        self.port = ""

    def wait_until_ready(self) -> None:
        def port() -> str | None:
            assert self.process.poll() is None, self.log.read_text()
            found = re.search(r"(?i:listening on).* address=127\.0\.0\.1:(\d+)", self.log.read_text())
            return found and found[1]

        def is_ready() -> bool:
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=60) as answer:
                    return bool(answer.status == 200)
            except OSError:  # it listens before it has read its storage, and says 503 until then
                return False

        self.port = wait_for(port, self.log.read_text)
        wait_for(is_ready, self.log.read_text)

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(query)}"
        try:
            with urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError as error:
            body = getattr(error, "read", lambda: b"")()
            raise AssertionError(f"{path} {query}: {error} {body!r}") from error

    def query(self, text: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series of this moment."""
        result = self.ask("query", query=text)["result"]
        return [(item["metric"], float(item["value"][1])) for item in result]


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "prometheus.token"
    path.write_text("A1b2C3d4e5F6g7H8" * 3 + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def moving(token: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that takes a token. Time goes on there: on the frozen fleet no CPU has a share."""
    log = tmp_path_factory.mktemp("moving") / "stderr"
    options = ("--read-token-file", str(token), "--without-tls")
    with (
        DemoFleet(machines=1, seed=3) as fleet,
        Served(log, fleet.environment, *options, listen="0.0.0.0:0") as served,
    ):
        yield served


@pytest.fixture(scope="module")
def prometheus(
    served: Served, moving: Served, token: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), served, moving, token)
    try:
        running.wait_until_ready()
        wait_for(
            lambda: [value for _, value in running.query("up")] == [1.0, 1.0],
            lambda: running.ask("targets"),
        )
        yield running
    finally:
        running.process.terminate()
        try:
            running.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()


@needs_prometheus
def test_prometheus_has_the_numbers_of_the_api(served: Served, prometheus: Prometheus) -> None:
    def differing() -> dict[Any, Any]:
        wanted = numbers_of(served.json("/api/infrastructure"))
        told = same_numbers(lambda name: prometheus.query(f'{name}{{instance="127.0.0.1:{served.port}"}}'))
        return {key: (wanted.get(key), told.get(key)) for key in wanted.keys() | told.keys()
                if wanted.get(key) != told.get(key)}  # fmt: skip

    wait_for(lambda: not differing(), differing)
    for target in prometheus.ask("targets")["activeTargets"]:
        assert (target["health"], target["lastError"]) == ("up", "")
    metadata = prometheus.ask("metadata")
    assert metadata["fleettui_gpu_memory_free_bytes"][0]["type"] == "gauge"
    assert metadata["fleettui_gpu_memory_free_bytes"][0]["unit"] == "bytes"


def test_beyond_loopback_metrics_take_a_token(moving: Served, token: Path) -> None:
    assert moving.ask("/metrics").status == 401
    told = moving.ask("/metrics", headers={"Authorization": f"Bearer {token.read_text().strip()}"})
    assert (told.status, b"fleettui_machine_up" in told.body) == (200, True)


@needs_prometheus
def test_every_query_of_the_dashboard_and_of_the_page_has_data(prometheus: Prometheus) -> None:
    queries = [
        *map(filled, dashboard_queries()),
        *re.findall(r"^[^#\n].*", blocks("promql")[0], re.MULTILINE),
    ]
    assert len(queries) > 30

    def empty() -> list[str]:
        return [query for query in queries if not prometheus.query(query)]

    wait_for(lambda: not empty(), empty)


@needs_prometheus
def test_prometheus_evaluates_every_alert(prometheus: Prometheus) -> None:
    def rules() -> list[dict[str, Any]]:
        (group,) = prometheus.ask("rules")["groups"]
        return list(group["rules"])

    assert len(rules()) == RULES.read_text().count("- alert:")
    wait_for(lambda: all(rule["health"] == "ok" for rule in rules()), rules)
