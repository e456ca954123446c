# ruff: noqa: E501 - one line for each reader
"""Every function of probes/ that reads what came from a machine, with what its result may hold.

`test_any_bytes.py` runs all of them on damaged samples and on any bytes, `make fuzz` for much longer; a
function that reads bytes and is not here fails a test.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from parser_samples import OWN_SAMPLES

import fleettui.probes
from fleettui.model.unknown import Unknown
from fleettui.probes import (
    amd,
    amd_json,
    amd_problems,
    amd_processes,
    amd_sysfs,
    amd_tools,
    cgroups,
    clean,
    clock,
    cpu,
    cpuinfo,
    disks,
    doctor,
    frames,
    loops,
    lsblk,
    lscpu,
    machine_logs,
    memory,
    memory_details,
    net,
    numbers,
    nvidia,
    nvidia_condition,
    nvidia_lists,
    nvidia_problems,
    nvidia_rows,
    nvidia_xid,
    nvidia_xml,
    processes,
    profile,
    socket_peers,
    sockets,
    system,
    windows,
)
from fleettui.probes.engines import (
    PROBES,
    answers,
    llamacpp,
    llamacpp_models,
    llamaswap,
    lmstudio,
    metrics,
    model_lists,
    ollama,
    ollama_environment,
    ollama_host,
    ollama_show,
    sglang,
    vllm,
)
from fleettui.probes.loops_gpu import FAST_FIELDS

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXIT_CODES = (0, 1, 2, 4, 6, 9, 12, 14, 15, 18, 64, 75, 76, 77, 124, 126, 127, 137, 143, 255)
STATUSES = (200, 204, 301, 400, 401, 403, 404, 500, 502, 503)
HEADERS: tuple[answers.Headers, ...] = (
    (),
    (("date", "Tue, 10 Mar 2026 09:15:30 GMT"),),
    (("date", "nonsense"), ("server", "\x1b]0;x\x07nginx/1")),
    (("content-type", "text/html"),),
)


@dataclass(frozen=True, slots=True)
class Given:
    """What a reader is called with: texts of the machine, an exit code, a number to choose by."""

    a: bytes
    b: bytes = b""
    c: bytes = b""
    code: int = 0
    pick: int = 0

    @property
    def text(self) -> str:
        return self.a.decode("utf-8", "replace")

    @property
    def status(self) -> int:
        return STATUSES[self.pick % len(STATUSES)] if self.pick % 4 else 200

    @property
    def headers(self) -> answers.Headers:
        return HEADERS[self.pick % len(HEADERS)]


Formula = Callable[[float], float]

KIB = lambda n: n // 1024  # noqa: E731 - bytes as KiB, KiB as MiB
SECTORS = lambda n: n * 512  # noqa: E731
WHOLE = lambda n: float(round(n)) if n < 1e18 else n  # noqa: E731 - a percentage of AMD's tools
MIB = lambda n: n // (1 << 20)  # noqa: E731
GIB = lambda n: int(n * 1024)  # noqa: E731 - GiB as MiB
KIB_OF_MIB = lambda n: int(n * 1024) // (1 << 20)  # noqa: E731 - KB as MiB
MILLI = lambda n: round(n / 1000, 6)  # noqa: E731 - m°C
MICRO = lambda n: round(n / 1e6, 6)  # noqa: E731 - µW


@dataclass(frozen=True, slots=True)
class Reader:
    """One function of probes/."""

    name: str
    """`module.function`."""
    read: Callable[[Given], object]
    samples: str
    """Folders and beginnings of file names, and names in OWN_SAMPLES, separated by blanks."""
    formulas: tuple[Formula, ...] = ()
    """What a number in the result may be, beside a number of the input itself."""
    why_any_number: str = ""
    """Why numbers are not compared here: another test does, or they are none of the machine's."""
    is_raw: bool = False
    """The result goes to another reader and is not cleaned yet."""


def leaves(document: object) -> Iterator[object]:
    """Every value of a JSON document, objects themselves too (a quantity may be one)."""
    yield document
    if isinstance(document, dict):
        for item in document.values():
            yield from leaves(item)
    elif isinstance(document, list):
        for item in document:
            yield from leaves(item)


def each_value(read: Callable[[Any], object]) -> Callable[[Given], object]:
    """A reader of one JSON value on all values of the document, or on the text itself."""

    def read_all(given: Given) -> object:
        document, _ = amd_json.read_document(given.a)
        return [read(value) for value in leaves(document)] + [read(given.text[:60])]

    return read_all


def each_line(read: Callable[[str], object]) -> Callable[[Given], object]:
    """A reader of one line or word on all of them."""

    def read_all(given: Given) -> object:
        words = [word for line in given.text.split("\n") for word in (line, *line.split(", "))]
        return [read(word) for word in words[:400]]

    return read_all


def _amd_cards(given: Given) -> object:
    facts = amd.merge(amd_sysfs.parse_sysfs(given.a), amd_tools.parse_tool(given.b, given.c, given.c))
    return amd.make_cards(amd.with_kinds(facts, amd_sysfs.parse_kinds(given.c)), given.pick % 9)


def _fast_fields(given: Given) -> tuple[str, ...]:
    dropped = FAST_FIELDS[given.pick % len(FAST_FIELDS)]
    return FAST_FIELDS if given.pick % 3 else tuple(name for name in FAST_FIELDS if name != dropped)


def _uuids(given: Given) -> Mapping[int, Any]:
    return {number: f"GPU-{number}" for number in range(given.pick % 4)} | {9: Unknown("none")}


def _engine_answers(given: Given) -> object:
    found = {
        path: answers.TextAnswer(given.status, tuple(given.headers), body, 1000.0)
        for path, body in (("/api/ps", given.a), ("/api/tags", given.b), ("/api/version", given.c))
    }
    reading = ollama.read_answers(7, found)
    return [reading.loaded, reading.installed, reading.version, reading.error]


def _document(given: Given) -> Any:
    return answers.judge_answer(200, (), given.a).document


def _all_answers(kind: Any) -> Callable[[Given], object]:
    """Everything an engine is asked, answered by the three texts in turn, twice: the second time on a reading."""
    probe = PROBES[kind]

    def read(given: Given) -> object:
        texts = (given.a, given.b, given.c)
        reading = None
        for turn in range(2):
            found = {
                question.path: answers.TextAnswer(
                    given.status, tuple(given.headers), texts[(number + given.pick + turn) % 3], 1000.0
                )
                for number, question in enumerate(probe.questions)
            }
            for path in probe.busy_paths(reading) if reading else ():
                found[path] = answers.TextAnswer(200, (), given.b, 1000.0)
            reading = probe.read_answers(7, found, reading)
        assert probe.read_answers(7, found, reading).kind == kind
        return reading

    return read


def _recognised(given: Given) -> object:
    found = answers.TextAnswer(given.status, tuple(given.headers), given.a, 1000.0)
    for probe in PROBES.values():
        for path in (*probe.sign_paths, *(question.path for question in probe.questions)):
            assert probe.recognise(path, found) in (True, False, None)
    return ()


R = Reader
AMD = "amd/"
SMI = "samples/nvidia-smi/"
PROC = "samples/linux/ samples/nvidia-smi/18-gb10-unified-memory-meminfo"
ENGINE = "samples/ollama/"
LISTS = "engines/vllm_v1 engines/llamacpp_v1 engines/llamacpp_router_models servers/05 servers/13 servers/20 own/swap"
TEXTS = "engines/vllm_metrics_idle engines/llamacpp_metrics servers/01 servers/03 servers/12 servers/21"
_SUMS = "sums over series and shares as percent; test_engine_samples has them"
CLOCK = "own/clock"
_TIMES = "times are moved to the operator's clock; test_ollama checks the rest"

READERS: tuple[Reader, ...] = (
    # -- NVIDIA
    R("nvidia.parse_gpus", lambda g: nvidia.parse_gpus(g.a, g.code), f"own/hung own/status {SMI}"),
    R("nvidia_rows.read_rows", lambda g: nvidia_rows.read_rows(g.text, _fast_fields(g))[0], f"own/fast {SMI}"),
    R("nvidia.parse_rows", lambda g: nvidia.parse_rows(g.a, ("index", "uuid", "name")), SMI),
    R("nvidia_condition.parse_condition",
      lambda g: nvidia_condition.parse_condition(g.a, g.code, nvidia_condition.condition_fields()),
      f"own/condition {SMI}15"),
    R("nvidia_condition.read_throttle", each_line(nvidia_condition.read_throttle), "own/condition own/masks"),
    R("nvidia_lists.read_instances", lambda g: nvidia_lists.read_instances(g.a, g.b), f"{SMI}22 {SMI}24 own/list"),
    R("nvidia_lists.parse_version", lambda g: nvidia_lists.parse_version(g.a), f"{SMI}35"),
    R("nvidia_xml.scan_log", lambda g: nvidia_xml.scan_log(g.a), f"{SMI}24", is_raw=True),
    R("nvidia_xid.parse_xids", lambda g: nvidia_xid.parse_xids(g.a, g.code % 2), "own/xid"),
    R("nvidia_problems.read_problem", lambda g: nvidia_problems.read_problem(g.text.split("\n"), g.code), SMI,
      why_any_number="exit codes are told"),
    R("nvidia_problems.read_refused_field", each_line(nvidia_problems.read_refused_field), f"{SMI}15",
      is_raw=True),
    R("nvidia_problems.read_fault", each_line(nvidia_problems.read_fault), f"{SMI}05 {SMI}06 {SMI}04"),
    R("nvidia_problems.fault_code", each_line(nvidia_problems.fault_code), f"{SMI}04 {SMI}05"),
    R("nvidia_problems.find_bus_id", each_line(nvidia_problems.find_bus_id), f"{SMI}05 {SMI}06"),
    R("nvidia_problems.read_bus_id", each_line(nvidia_problems.read_bus_id), f"{SMI}49 own/status",
      why_any_number="hexadecimal parts of the text"),
    R("processes.parse_apps", lambda g: processes.parse_apps(g.a, g.code), f"{SMI}18 {SMI}29 {SMI}40 {SMI}42"),
    R("processes.parse_owners", lambda g: processes.parse_owners(g.a), "own/owners"),
    # -- AMD
    R("amd_sysfs.parse_sysfs", lambda g: amd_sysfs.parse_sysfs(g.a), f"{AMD}sysfs", (MIB, MILLI, MICRO, WHOLE),
      "fans and degrees are rounded shares; test_amd_samples has them"),
    R("amd_sysfs.parse_unbound", lambda g: amd_sysfs.parse_unbound(g.a), f"{AMD}sysfs own/unbound"),
    R("amd_sysfs.parse_tool_name", lambda g: amd_sysfs.parse_tool_name(g.a), f"{AMD}sysfs own/unbound own/tool"),
    R("amd_sysfs.parse_kinds", lambda g: list(amd_sysfs.parse_kinds(g.a).values()), f"{AMD}kinds"),
    R("amd_tools.parse_tool", lambda g: amd_tools.parse_tool(g.a, g.b, g.c),
      f"{AMD}smi {AMD}rocm", (MIB, GIB, KIB_OF_MIB, WHOLE), "kilowatts and percent by unit; each_value has them"),
    R("amd_processes.parse_amd_processes",
      lambda g: amd_processes.parse_amd_processes(g.a, g.code, _uuids(g)), f"own/amd-process {AMD}", (MIB, GIB, KIB_OF_MIB)),
    R("amd.make_cards", _amd_cards, AMD, why_any_number="sums of two memories, and indices behind other cards"),
    R("amd_json.read_document", lambda g: amd_json.read_document(g.a), AMD, is_raw=True),
    R("amd_json.read_entries", lambda g: amd_json.read_entries(amd_json.read_document(g.a)[0]), AMD, is_raw=True),
    R("amd_json.read_text", each_value(amd_json.read_text), AMD),
    R("amd_json.read_quantity", lambda g: [pair[0] for pair in each_value(amd_json.read_quantity)(g)], AMD),  # type: ignore[attr-defined]
    R("amd_json.read_mib", each_value(amd_json.read_mib), AMD, (MIB, GIB, KIB_OF_MIB, lambda n: int(n * (1 << 20)))),
    R("amd_json.read_whole", each_value(amd_json.read_whole), AMD, (WHOLE,)),
    R("amd_json.read_plain", each_value(amd_json.read_plain), AMD),
    R("amd_problems.split_tool", lambda g: amd_problems.split_tool(g.a), AMD, is_raw=True),
    R("amd_problems.read_amd_problem",
      lambda g: amd_problems.read_amd_problem("", g.text.split("\n"), g.code), AMD,
      why_any_number="exit codes are told"),
    # -- the machine
    R("cpu.parse_cpu_times", lambda g: cpu.parse_cpu_times(g.a), "samples/linux/08 samples/linux/09",
      why_any_number="absent counters are 0"),
    R("cpu.parse_load", lambda g: cpu.parse_load(g.a), "own/load"),
    R("cpu.parse_uptime", lambda g: cpu.parse_uptime(g.a), "own/uptime"),
    R("cpu.parse_cpu", lambda g: cpu.parse_cpu(g.a, g.b, g.c, cpu.parse_cpu_times(g.c))[0],
      "samples/linux/08 samples/linux/09 own/load", why_any_number="a share of differences: test_facts, 0 to 100"),
    R("cpuinfo.parse_cpuinfo", lambda g: cpuinfo.parse_cpuinfo(g.a)[0], "samples/linux/11 own/cpuinfo",
      why_any_number="counts of lines"),
    R("cpuinfo.count_cpus", lambda g: cpuinfo.count_cpus(g.text), "own/cpus",
      why_any_number="how many numbers a range has"),
    R("system.parse_system", lambda g: system.parse_system(g.b, g.c, g.a, g.b), "own/os own/host samples/linux/11",
      why_any_number="counts of processors"),
    R("system.read_system_name", lambda g: system.read_system_name(g.a), "own/uname"),
    R("system.parse_os_name", lambda g: system.parse_os_name(g.a), "own/os"),
    R("system.parse_runtime", lambda g: system.parse_runtime(g.a, g.code), "own/runtime"),
    R("memory.parse_memory", lambda g: memory.parse_memory(g.a), PROC, (KIB,),
      "a limit less what is used is a difference; test_samples has them"),
    R("memory_details.parse_memory_details",
      lambda g: memory_details.parse_memory_details(g.a, g.b, g.c, g.a), "samples/linux/05 own/psi own/swaps",
      why_any_number="what the cache can give back is a difference"),
    R("memory_details.parse_arc_bytes", lambda g: memory_details.parse_arc_bytes(g.a), "samples/linux/05",
      why_any_number="what the cache can give back is a difference; test_samples has it"),
    R("memory_details.parse_pressure", lambda g: memory_details.parse_pressure(g.a), "own/psi"),
    R("memory_details.parse_zram_kib", lambda g: memory_details.parse_zram_kib(g.a), "own/swaps",
      why_any_number="a sum over devices"),
    R("cgroups.parse_memory_limits", lambda g: cgroups.parse_memory_limits(g.a, None), "own/limits", (KIB,)),
    R("cgroups.parse_limit_cache_kib", lambda g: cgroups.parse_limit_cache_kib(g.a), "own/cgroup", (KIB,)),
    R("cgroups.parse_core_limit", lambda g: cgroups.parse_core_limit(g.a), "own/cgroup",
      why_any_number="a quotient of two numbers"),
    R("cgroups.binds_sessions_only", lambda g: cgroups.binds_sessions_only(g.a), "own/cgroup"),
    R("net.parse_net", lambda g: net.parse_net(g.a, 1.0, None)[0], "own/net"),
    R("net.parse_uncounted", lambda g: sorted(net.parse_uncounted(g.a)), "own/links"),
    R("sockets.parse_sockets", lambda g: sockets.parse_sockets(g.a), "own/sockets",
      why_any_number="ports are hexadecimal; test_sockets has them"),
    R("socket_peers.parse_peers", lambda g: socket_peers.parse_peers(g.a, 11434), "own/peers",
      why_any_number="addresses are hexadecimal; test_drain_engine_calls has them"),
    R("engines.ollama_environment.parse_ollama_settings",
      lambda g: ollama_environment.parse_ollama_settings(g.a, g.code), "own/settings",
      why_any_number="the usual port, where none is set"),
    R("sockets.parse_servers", lambda g: sockets.parse_servers(g.a), "own/servers"),
    R("disks.parse_disks", lambda g: disks.parse_disks(g.a, g.code), "own/df",
      why_any_number="datasets of a pool are summed; test_facts has plain ones"),
    R("lsblk.parse_blocks", lambda g: lsblk.parse_blocks(g.a, g.code), "samples/linux/14 samples/linux/15 samples/linux/17 samples/linux/19 own/blocks", (SECTORS,)),
    R("clock.parse_epoch", lambda g: clock.parse_epoch(g.a), CLOCK, (lambda n: n + 1.0,)),
    R("clock.find_skew_s", lambda g: clock.find_skew_s(g.a, 1.79e9, 1.79e9 + 1), CLOCK,
      why_any_number="a difference to our clock"),
    # -- the profile
    R("lscpu.parse_cores", lambda g: lscpu.parse_cores(g.a), "own/lscpu own/core-ids", why_any_number="cores times sockets"),
    R("profile.parse_cards", lambda g: profile.parse_cards(g.a, g.code), f"own/profile {SMI}15 own/hung", (lambda n: (2 * n + 1024) // 2048,)),
    R("profile.parse_capability", each_line(profile.parse_capability), "own/capabilities"),
    # -- the doctor
    R("doctor.parse_who", lambda g: doctor.parse_who(g.a), "own/who"),
    R("doctor.parse_journal", lambda g: doctor.parse_journal(g.a, g.code), "own/journal",
      why_any_number="exit codes are told"),
    R("doctor.parse_root", lambda g: doctor.parse_root(g.a), "own/root own/long-root"),
    R("doctor.parse_listen", lambda g: doctor.parse_listen(g.a, 11434), "own/listen"),
    # -- logs
    R("machine_logs.parse_log", lambda g: machine_logs.parse_log(g.a, g.code), "own/log own/journal",
      why_any_number="seconds since the epoch of a date"),
    R("machine_logs.parse_dmesg", lambda g: machine_logs.parse_dmesg(g.a, 1.79e9, 900.0), "own/xid own/dmesg",
      why_any_number="seconds since the epoch, by the uptime"),
    R("machine_logs.parse_log_files", lambda g: machine_logs.parse_log_files(g.a), "own/logfiles"),
    # -- engines
    R("engines.answers.judge_answer", lambda g: answers.judge_answer(g.status, g.headers, g.a).error, ENGINE,
      why_any_number="HTTP status codes are told"),
    R("engines.answers.judge_status", lambda g: answers.judge_status(g.status, g.headers, g.a), ENGINE,
      why_any_number="HTTP status codes are told"),
    R("engines.answers.read_error", each_value(answers.read_error), f"{ENGINE}24 servers/07 servers/10 servers/19"),
    R("engines.answers.read_names", each_value(answers.read_names), f"{ENGINE}14 servers/20"),
    R("engines.metrics.scan_metrics",
      lambda g: [sample.value for found in metrics.scan_metrics(g.a, vllm.NAMES).values() for sample in found], TEXTS),
    R("engines.metrics.begins_line", lambda g: metrics.begins_line(g.a, b"vllm:"), TEXTS),
    R("engines.model_lists.read_rows", lambda g: model_lists.read_rows(_document(g)), LISTS, is_raw=True),
    R("engines.model_lists.read_id", each_value(lambda value: model_lists.read_id(answers.as_dict(value))), LISTS),
    R("engines.model_lists.read_served",
      lambda g: model_lists.read_served("vllm", model_lists.read_rows(_document(g)) or []), LISTS),
    R("engines.vllm.parse_metrics", lambda g: vllm.parse_metrics(g.a), TEXTS, why_any_number=_SUMS),
    R("engines.vllm.read_answers", _all_answers("vllm"), f"{LISTS} {TEXTS} engines/vllm_",
      why_any_number=f"HTTP status codes are told; {_SUMS}"),
    R("engines.llamacpp.parse_metrics", lambda g: llamacpp.parse_metrics(g.a), TEXTS, why_any_number=_SUMS),
    R("engines.llamacpp_models.parse_models", lambda g: llamacpp_models.parse_models(_document(g)), LISTS),
    R("engines.llamacpp.read_answers", _all_answers("llamacpp"), f"{LISTS} {TEXTS} engines/llamacpp_",
      why_any_number=f"HTTP status codes are told; {_SUMS}"),
    R("engines.llamaswap.parse_running", lambda g: llamaswap.parse_running(_document(g)), "own/running"),
    R("engines.llamaswap.parse_models", lambda g: llamaswap.parse_models(_document(g)), LISTS),
    R("engines.llamaswap.read_answers", _all_answers("llamaswap"), f"{LISTS} own/running",
      why_any_number="HTTP status codes are told"),
    R("engines.lmstudio.parse_v0", lambda g: lmstudio.parse_v0(_document(g)), LISTS),
    R("engines.lmstudio.parse_v1", lambda g: lmstudio.parse_v1(_document(g)), LISTS),
    R("engines.lmstudio.read_answers", _all_answers("lmstudio"), f"{LISTS} servers/19",
      why_any_number="HTTP status codes are told"),
    R("engines.sglang.parse_metrics", lambda g: sglang.parse_metrics(g.a), TEXTS, why_any_number=_SUMS),
    R("engines.sglang.read_answers", _all_answers("sglang"), f"{LISTS} {TEXTS}",
      why_any_number=f"HTTP status codes are told; {_SUMS}"),
    R("engines.vllm.recognise", _recognised, f"{LISTS} {TEXTS} servers/19 engines/llamacpp_props"),
    R("engines.answers.parse_time", each_line(answers.parse_time), f"own/times {ENGINE}06",
      why_any_number="seconds since the epoch of a date"),
    R("engines.answers.parse_http_date", each_line(answers.parse_http_date), "own/times",
      why_any_number="seconds since the epoch of a date"),
    R("engines.answers.parse_http_text", lambda g: answers.parse_http_text(g.a, 0.0), f"{ENGINE}22 {ENGINE}11",
      is_raw=True),
    R("engines.answers.read_count", each_value(lambda value: answers.read_count(value, Unknown("none"))), ENGINE),
    R("engines.answers.read_name", each_value(lambda value: answers.read_name(value, Unknown("none"))), ENGINE),
    R("engines.ollama.parse_ps", lambda g: ollama.parse_ps(g.status, g.headers, g.a, 1.79e9), ENGINE,
      why_any_number=_TIMES),
    R("engines.ollama.parse_tags", lambda g: ollama.parse_tags(g.status, g.headers, g.a), ENGINE,
      why_any_number="HTTP status codes are told"),
    R("engines.ollama.parse_version", lambda g: ollama.parse_version(g.status, g.headers, g.a), f"{ENGINE}12"),
    R("engines.ollama.parse_show", lambda g: ollama.parse_show(200, (), g.a), f"{ENGINE}27"),
    R("engines.ollama_show.cut_vocabulary", lambda g: ollama_show.cut_vocabulary(g.a) and None,
      f"engines/ollama_show_ own/show {ENGINE}27"),
    R("engines.ollama_show.parse_shape", lambda g: ollama_show.parse_shape(200, (), g.a),
      f"engines/ollama_show_ own/show {ENGINE}27", why_any_number="bytes are sums over tensors; test_ollama_show has them"),
    R("engines.ollama.read_answers", _engine_answers, ENGINE, why_any_number=_TIMES),
    R("engines.ollama_host.parse_ollama_host", each_line(ollama_host.parse_ollama_host), f"{ENGINE}19",
      why_any_number="a port that is none is the default one"),
    R("engines.ollama_host.parse_listen_targets", lambda g: ollama_host.parse_listen_targets(g.a), f"{ENGINE}20"),
    # -- Windows
    R("windows.clean_output", lambda g: windows.clean_output(g.a, g.b), f"own/powershell {SMI}29", is_raw=True),
    R("windows.is_answer", lambda g: windows.is_answer(("gpu", "apps", "list")[g.pick % 3], g.a, g.code), SMI),
    R("windows.names_running", lambda g: windows.names_running(g.a), "own/tasks"),
    # -- words
    R("numbers.read_int", each_line(numbers.read_int), SMI),
    R("numbers.read_float", each_line(numbers.read_float), SMI),
    R("numbers.read_text", each_line(numbers.read_text), SMI),
    R("clean.clean_text", lambda g: [clean.clean_text(g.a), clean.clean_text(g.text, 20)], "samples/ssh/"),
    R("clean.clean_excerpt", lambda g: clean.clean_excerpt(g.a), "samples/ssh/"),
    R("clean.clean_word", lambda g: clean.clean_word(g.text), "samples/ssh/"),
    # -- what travels
    R("frames.parse_request", lambda g: frames.parse_request(g.a), "own/request", is_raw=True),
    R("frames.is_section", lambda g: frames.is_section(g.a), "own/request"),
    R("loops.parse_loop_command", lambda g: loops.parse_loop_command(g.a.decode("latin-1")), "own/command"),
)  # fmt: skip

NOT_HERE: Mapping[str, str] = {
    "engines.ollama.read_failure": "words of ours, no bytes of a machine",
    "frames.encode_frame": "makes bytes",
}
"""Functions by name or type of parameter that read nothing of a machine."""


def public_readers() -> set[str]:
    """`module.function` of each public function of probes/ that is called like a reader or takes bytes."""
    found = set()
    prefix = f"{fleettui.probes.__name__}."
    for module_info in pkgutil.walk_packages(fleettui.probes.__path__, prefix):
        module = importlib.import_module(module_info.name)
        for name, item in vars(module).items():
            function = inspect.unwrap(item) if callable(item) else None
            if (
                name.startswith("_")
                or not inspect.isfunction(function)
                or function.__module__ != module.__name__
            ):
                continue
            takes_bytes = any(
                "bytes" in str(kind) for key, kind in function.__annotations__.items() if key != "return"
            )
            if takes_bytes or name.startswith(("parse_", "read_", "scan_")):
                found.add(f"{module.__name__.removeprefix(prefix)}.{name}")
    return found


@cache
def samples_of(reader: Reader) -> tuple[bytes, ...]:
    """The samples a reader is tried with; all those of its folders where no name is given."""
    found: list[bytes] = []
    for start in reader.samples.split():
        if start.startswith("own/"):
            found.append(OWN_SAMPLES[start.removeprefix("own/")])
            continue
        folder, _, name = start.rpartition("/")
        paths = sorted(path for path in (FIXTURES / folder).iterdir() if path.name.startswith(name))
        assert paths, f"{reader.name}: no sample begins with {start}"
        found += [path.read_bytes() for path in paths]
    return tuple(found)
