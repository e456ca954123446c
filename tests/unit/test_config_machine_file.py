"""Machine files: what they declare, and every error with line, key and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.config.machine_file import read_machine_file
from fleettui.model.machine import NOT_DECLARED, DeclaredGpu, EngineEndpoint, Machine, NvidiaSmi, SshSettings
from fleettui.model.written import dump_json, read_float

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "machines"
LEAST = b"name: ada\nrole: gpu-host\nhardware: {}\nnetwork: {hostname: ada.lan}\nmodels: []\n"


def read_good(text: str) -> Machine:
    machine, problems = read_machine_file(LEAST + text.encode(), "ada.yaml")
    assert problems == ()
    assert machine is not None
    return machine


@pytest.mark.parametrize("name", ["workstation.yaml", "app-host.yaml"])
def test_guide_files_ship_unchanged(name: str) -> None:
    assert (ROOT / "machines" / name).read_bytes() == (FIXTURES / name).read_bytes()


def test_workstation_is_read_whole() -> None:
    machine, problems = read_machine_file((FIXTURES / "workstation.yaml").read_bytes(), "m/workstation.yaml")
    assert problems == ()
    assert machine == Machine(
        name="workstation",
        role="gpu-host",
        hostname="workstation.lan",
        port=11434,
        cpu="16-core x86_64",
        ram_gb=128,
        gpus=(DeclaredGpu("24GB consumer GPU", 24), DeclaredGpu("24GB consumer GPU", 24)),
        storage_gb=8000,
        models=("llama3.1:70b", "qwen2.5:32b", "nomic-embed-text"),
        tags=("primary", "gpu", "training"),
        engines=(EngineEndpoint("ollama", 11434),),
        document={
            "name": "workstation",
            "role": "gpu-host",
            "hardware": {
                "cpu": "16-core x86_64",
                "ram_gb": 128,
                "gpu": [
                    {"model": "24GB consumer GPU", "vram_gb": 24},
                    {"model": "24GB consumer GPU", "vram_gb": 24},
                ],
            },
            "storage_gb": 8000,
            "network": {"hostname": "workstation.lan", "port": 11434},
            "models": ["llama3.1:70b", "qwen2.5:32b", "nomic-embed-text"],
            "tags": ["primary", "gpu", "training"],
        },
        config_file="m/workstation.yaml",
    )
    assert list(machine.document) == ["name", "role", "hardware", "storage_gb", "network", "models", "tags"]


def test_app_host_is_cpu_only() -> None:
    machine, problems = read_machine_file((FIXTURES / "app-host.yaml").read_bytes(), "app-host.yaml")
    assert problems == ()
    assert machine is not None
    assert (machine.gpus, machine.is_cpu_only, machine.declares_gpus) == ((), True, False)


def test_least_file_declares_nothing_it_does_not_say() -> None:
    machine = read_good("")
    assert machine.gpus is None
    assert not machine.is_cpu_only
    assert (machine.cpu, machine.ram_gb, machine.storage_gb) == (NOT_DECLARED,) * 3
    assert (machine.port, machine.ssh, machine.tags) == (11434, SshSettings(), ())
    assert machine.engines == (EngineEndpoint("ollama", 11434),)


def test_empty_keys_mean_nothing_there() -> None:
    text = b"name: a\nrole: r\nhardware:\nnetwork: {hostname: a, port: }\nmodels:\ntags:\nssh:\nengines:\n"
    machine, problems = read_machine_file(text, "a.yaml")
    assert problems == ()
    assert machine is not None
    assert (machine.models, machine.tags, machine.gpus, machine.port) == ((), (), None, 11434)
    assert machine.document["models"] is None


def test_unknown_keys_are_kept_as_written() -> None:
    text = "note: 2024-05-01\npower: on\nfirmware: 1.10\ncpu_roles: [a, {b: yes}]\nrack: {row: 007}\n"
    document = read_good(text).document
    assert list(document)[5:] == ["note", "power", "firmware", "cpu_roles", "rack"]
    assert dump_json({key: document[key] for key in list(document)[5:]}) == (
        '{"note": "2024-05-01", "power": "on", "firmware": 1.10, '
        '"cpu_roles": ["a", {"b": "yes"}], "rack": {"row": "007"}}'
    )


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("ssh: local", SshSettings(is_local=True)),
        ("ssh: {}", SshSettings()),
        ("ssh: {is_local: true}", SshSettings()),
        ("ssh: {host: fe80::1%eth0, port: 2222}", SshSettings(host="fe80::1%eth0", port=2222)),
        ("ssh: {user: ops, identity: ~/.ssh/gpu}", SshSettings(user="ops", identity="~/.ssh/gpu")),
        ("ssh: {jump: 'me@a.lan:22,[::1]:2200'}", SshSettings(jump="me@a.lan:22,[::1]:2200")),
        (f"ssh: {{host_key: 'SHA256:{'a' * 43}='}}", SshSettings(host_key="SHA256:" + "a" * 43)),
    ],
)
def test_ssh_settings(text: str, settings: SshSettings) -> None:
    assert read_good(text).ssh == settings


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("nvidia_smi: /opt/nvidia/bin/nvidia-smi", NvidiaSmi("/opt/nvidia/bin/nvidia-smi")),
        ("nvidia_smi: {path: /opt/x/nvidia-smi, wake: true}", NvidiaSmi("/opt/x/nvidia-smi", True)),
        ("nvidia_smi: {wake: false}", NvidiaSmi()),
        ("nvidia_smi:", NvidiaSmi()),
    ],
)
def test_how_nvidia_smi_is_called(text: str, tool: NvidiaSmi) -> None:
    assert read_good(text).nvidia_smi == tool


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("engines: []", ()),
        ("engines: [{kind: ollama}]", (EngineEndpoint("ollama", 11434),)),
        ("engines: [{kind: vllm}]", (EngineEndpoint("vllm", 8000),)),
        (
            "engines: [{kind: vllm, port: 8001}, {kind: llamacpp}]",
            (EngineEndpoint("vllm", 8001), EngineEndpoint("llamacpp", 8080)),
        ),
        (
            "engines: [{kind: sglang, url: 'https://x.lan/v/', api_key_env: KEY}]",
            (EngineEndpoint("sglang", 443, "https://x.lan/v", "KEY"),),
        ),
        ("engines: [{kind: vllm, url: 'http://x.lan:81'}]", (EngineEndpoint("vllm", 81, "http://x.lan:81"),)),
    ],
)  # fmt: skip
def test_engines(text: str, endpoints: tuple[EngineEndpoint, ...]) -> None:
    assert read_good(text).engines == endpoints


def test_disabled_gpus_are_named_by_index_else_by_place() -> None:
    text = "gpus: [{index: 3, disabled: true}, {disabled: true}, {disabled: false}, {note: x}, five]"
    assert read_good(text).disabled_gpus == (1, 3)
    assert read_good("gpus: all of them").disabled_gpus == ()


def test_every_missing_key_is_named_at_once() -> None:
    machine, problems = read_machine_file(b"# nothing yet\n{}\n", "x.yaml")
    assert machine is None
    assert [problem.key for problem in problems] == ["name", "role", "hardware", "network.hostname", "models"]
    assert {problem.line for problem in problems} == {2}
    assert problems[3].message == "network.hostname is missing; add `network: {hostname: ada.lan}`."


WRONG = b"""\
name: 123
role: ""
hardware:
  gpu: none
  ram_gb: 128 GB
network:
  hostname: http://ada.lan:11434
  port: 70000
models: llama3
tags: [1, true, ok]
ssh: remote
storage_gb: -1
engines:
  - {kind: vlm}
  - {kind: vllm, port: 8000.5, url: "http://me:secret@x"}
  - {kind: vllm, port: 8000, api_key_env: "sk-secret"}
  - {kind: llamacpp, port: 8000}
  - 5
gpus: [{disabled: yes}]
role: again
"""


def test_commands_of_an_engine_stand_as_written() -> None:
    text = b"""
name: ada
role: gpu-host
hardware: {}
network: {hostname: ada.lan}
models: []
engines:
  - {kind: vllm, start: 'docker start "$HOME vllm"', stop: docker stop vllm}
  - {kind: ollama, stop: "two\\nlines"}
"""
    machine, problems = read_machine_file(text, "ada.yaml")
    assert machine is None
    assert [(problem.line, problem.key) for problem in problems] == [(9, "engines[1].stop")]
    machine, _ = read_machine_file(text.replace(b"\\nlines", b""), "ada.yaml")
    assert machine is not None
    assert machine.engines[0].start == 'docker start "$HOME vllm"'
    assert [engine.stop for engine in machine.engines] == ["docker stop vllm", "two"]
    assert machine.engines[1].start is None


def test_every_error_of_a_file_at_once_in_order() -> None:
    machine, problems = read_machine_file(WRONG, "x.yaml")
    assert machine is None
    assert [(problem.line, problem.key) for problem in problems] == [
        (1, "name"),
        (2, "role"),
        (4, "hardware.gpu"),
        (5, "hardware.ram_gb"),
        (7, "network.hostname"),
        (8, "network.port"),
        (9, "models"),
        (10, "tags[0]"),
        (10, "tags[1]"),
        (11, "ssh"),
        (12, "storage_gb"),
        (14, "engines[0].kind"),
        (15, "engines[1].port"),
        (15, "engines[1].url"),
        (16, "engines[2].api_key_env"),
        (18, "engines[4]"),
        (19, "gpus[0].disabled"),
        (20, "role"),
    ]
    assert {problem.file for problem in problems} == {"x.yaml"}
    assert all(problem.message.endswith(".") and "\n" not in problem.message for problem in problems)
    assert not any("secret" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("network: {hostname: a b}", "network.hostname", "character"),
        ("network: {hostname: 'ada.lan:11434'}", "network.hostname", "network.port"),
        ("network: {hostname: '[::1]'}", "network.hostname", "brackets"),
        ("network: {hostname: '-oProxyCommand=x'}", "network.hostname", "character"),
        ("network: {hostname: '$(reboot)'}", "network.hostname", "character"),
        ("network: {hostname: a, port: 0}", "network.port", "1 and 65535"),
        ('network: {hostname: a, port: "80"}', "network.port", "without quotes"),
        ("network: {hostname: a, port: true}", "network.port", "whole number"),
        ("network: ada.lan", "network", "map of keys"),
        ('name: "a\\nb"', "name", "one plain line"),
        ('name: "a\\e[2J"', "name", "control character"),
        ('name: "  "', "name", "empty"),
        ("hardware: {gpu: [{model: x, vram_gb: 0}]}", "hardware.gpu[0].vram_gb", "above 0"),
        ("hardware: {gpu: [RTX 4090]}", "hardware.gpu[0]", "map of keys"),
        ("hardware: [x]", "hardware", "map of keys"),
        ("models: [a, '']", "models[1]", "empty"),
        ('models: ["a\\tb"]', "models[0]", "control character"),
        ("ssh: {user: 'a b'}", "ssh.user", "login name"),
        ("ssh: {user: -l}", "ssh.user", "login name"),
        ("ssh: {jump: 'a.lan:x'}", "ssh.jump", "[user@]host[:port]"),
        ("ssh: {jump: '-oX@h'}", "ssh.jump", "[user@]host[:port]"),
        ("ssh: {host_key: abc}", "ssh.host_key", "ssh-keygen"),
        ("ssh: [a]", "ssh", "map of keys"),
        ("nvidia_smi: nvidia-smi", "nvidia_smi.path", "absolute path"),
        ("nvidia_smi: '/x/$(reboot)'", "nvidia_smi.path", "absolute path"),
        ("nvidia_smi: /usr/bin/smi-wrapper", "nvidia_smi.path", "/nvidia-smi"),
        ("nvidia_smi: {wake: 1}", "nvidia_smi.wake", "true or false"),
        ("engines: [{kind: vllm}, {kind: vllm}]", "engines[1]", "same port 8000"),
        ("engines: [{kind: vllm, url: 'x.lan:80'}]", "engines[0].url", "http://"),
        ("engines: [{port: 8000}]", "engines[0].kind", "missing"),
    ],
)  # fmt: skip
def test_one_wrong_value(text: str, key: str, words: str) -> None:
    name = text.partition(":")[0].encode()
    rest = b"".join(line for line in LEAST.splitlines(keepends=True) if not line.startswith(name + b":"))
    machine, problems = read_machine_file(rest + text.encode(), "x.yaml")
    assert machine is None
    assert [problem.key for problem in problems] == [key]
    assert words in problems[0].message


@pytest.mark.parametrize("data", [b"a: 1\n" * 5000, LEAST[:-3] + b"[" + b"5, " * 5000 + b"]\n"])
def test_endless_problems_end(data: bytes) -> None:
    machine, problems = read_machine_file(data, "x.yaml")
    assert machine is None
    assert 100 <= len(problems) <= 110


@pytest.mark.parametrize("data", [b"- a\n", b"just text", b"42", b"null"])
def test_no_map_is_one_problem(data: bytes) -> None:
    machine, problems = read_machine_file(data, "x.yaml")
    assert (machine, len(problems)) == (None, 1)


@given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode)))
def test_any_bytes_are_a_machine_or_problems(data: bytes) -> None:
    machine, problems = read_machine_file(data, "x.yaml")
    assert (machine is None) == bool(problems)


KEYS = [
    "name", "role", "hardware", "network", "models", "tags", "ssh", "engines", "gpus", "storage_gb",
    "gpu", "hostname", "port", "kind", "url", "host", "jump", "host_key", "user", "model", "vram_gb",
    "disabled", "index",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10) | st.sampled_from(["local", "ada.lan", "vllm", "http://x:1", "a@b:22"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_values_are_a_machine_or_problems(changes: dict[str, object]) -> None:
    least = {"name": "a", "role": "r", "hardware": {}, "network": {"hostname": "a"}, "models": []}
    text = json.dumps({**least, **changes}, ensure_ascii=True)
    machine, problems = read_machine_file(text.encode(), "x.yaml")
    assert (machine is None) == bool(problems)
    if machine is not None:
        assert dump_json(machine.document) == dump_json(json.loads(text, parse_float=read_float))


def test_examples_of_the_documentation_are_right() -> None:
    blocks = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8").split("```yaml\n")[1:]
    assert len(blocks) == 2
    for block in blocks:
        assert read_machine_file(block.partition("```")[0].encode(), "docs/machines.md")[1] == ()
