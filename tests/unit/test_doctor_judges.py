"""The verdicts of `machines doctor`, without a machine: evidence and hint of each case."""

from __future__ import annotations

import pytest

from fleettui.fleet.doctor.address import judge_address, judge_answer
from fleettui.fleet.doctor.check import split_advice
from fleettui.fleet.doctor.engines import judge_engine, judge_forwarding
from fleettui.fleet.doctor.file import judge_broken_file
from fleettui.fleet.doctor.gpu import judge_driver, judge_persistence, judge_tool
from fleettui.fleet.doctor.gpu_amd import judge_amd_driver, judge_amd_tool
from fleettui.fleet.doctor.gpu_answer import AmdAnswer, GpuAnswer
from fleettui.fleet.doctor.login import judge_host_key, judge_name, judge_tcp
from fleettui.fleet.doctor.run import broken_checkups
from fleettui.fleet.doctor.shell import judge_no_shell, judge_shell
from fleettui.fleet.doctor.system import judge_clock, judge_disks, judge_journal
from fleettui.model.gpu import GpuCard, GpuFault, GpuProblem, GpuReading
from fleettui.model.machine import ConfigProblem, DeclaredGpu, EngineEndpoint, Machine
from fleettui.model.readings import DisksReading, DiskUse, EngineReading
from fleettui.model.snapshot import HostKeyOffer
from fleettui.model.unknown import Unknown
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.login_steps import LoginSteps
from fleettui.probes.amd_problems import NOT_LOADED, read_amd_problem
from fleettui.probes.doctor import Account, JournalAnswer, RootMount
from fleettui.probes.nvidia_problems import read_problem

ADA = Machine("ada", "gpu-host", "ada.lan", gpus=(DeclaredGpu("RTX 4090", 24.0),) * 2)
OLLAMA = EngineEndpoint("ollama", 11434)
UP = EngineReading("ollama", 11434, "ok")
SMI = "/usr/bin/nvidia-smi"
OPS = Account("/bin/bash", "ops", ("ops", "video"))


def card(index: int, driver: str = "550.54.15") -> GpuCard:
    return GpuCard(index, f"GPU-{index}", "NVIDIA GeForce RTX 4090", driver)


def steps(**facts: object) -> LoginSteps:
    made = LoginSteps()
    for name, value in facts.items():
        setattr(made, name, value)
    return made


class TestLogin:
    def test_names(self) -> None:
        found = judge_name("ada.lan", steps(addresses=("192.0.2.10", "2001:db8::10")), None)
        assert (found.state, found.evidence) == ("pass", "ada.lan is 192.0.2.10, 2001:db8::10")
        literal = judge_name("192.0.2.10", steps(addresses=("192.0.2.10",)), None)
        assert literal.evidence == "an address, no name"
        assert judge_name("ada.lan", steps(), None).state == "skip", "a ProxyCommand resolves by itself"
        later = LinkError("connect", "ada.lan:22: connection refused; is sshd running there?")
        assert judge_name("ada.lan", steps(addresses=("192.0.2.10",)), later).state == "pass"

    def test_where_a_trusted_key_is_known_from(self) -> None:
        key = HostKeyOffer("ED25519", "SHA256:abc", "AAAA-BBBB")
        known = judge_host_key(ADA, steps(key=key), None)
        assert known.evidence == "ED25519 SHA256:abc, in known_hosts"
        approved = judge_host_key(ADA, steps(key=key, is_pinned=True), None)
        assert approved.evidence == "ED25519 SHA256:abc, approved"

    def test_a_rejected_machine_is_not_contacted(self) -> None:
        error = LinkError(
            "host key", "ada.lan:22: its key was rejected; nothing is asked", is_retryable=False
        )
        assert judge_name("ada.lan", steps(), error).state == "skip"
        assert judge_tcp(steps(), error).state == "skip"
        key = judge_host_key(ADA, steps(), error)
        assert (key.state, key.evidence) == ("fail", "ada.lan:22: its key was rejected")

    def test_a_jump_hosts_failure_is_no_failure_of_the_name(self) -> None:
        error = LinkError("resolve", "jump host bastion:22: name not found; check DNS", jump="bastion:22")
        assert judge_name("ada.lan", steps(jump="bastion:22"), error).state == "skip"


class TestShell:
    def test_noise_is_a_warning(self) -> None:
        assert judge_shell(OPS, "").evidence == "runs commands as ops, login shell /bin/bash"
        noisy = judge_shell(OPS, "Welcome to gpu-07")
        assert noisy.state == "warn"
        assert "'Welcome to gpu-07'" in noisy.evidence

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ("This account is restricted.", "restricted"),
            ('*** forbidden char/command over SSH: "x"', "restricted"),
            ("backup done", "forced to another command"),
            ("This account is currently not available.", "no login shell"),
            ("", "no shell: the session ended with exit code 1"),
        ],
    )
    def test_accounts_without_one(self, said: str, words: str) -> None:
        outcome = judge_no_shell("ended with exit code 1", said, is_late=False, limit_s=3.0)
        assert outcome.state == "fail"
        assert words in outcome.evidence
        assert said in outcome.evidence
        assert outcome.hint


class TestGpu:
    def test_found_where_and_how_fast(self) -> None:
        reading = GpuReading((card(0), card(1)))
        fast = judge_tool(GpuAnswer(SMI, reading, 0.085), ADA)
        assert (fast.state, fast.evidence) == ("pass", "/usr/bin/nvidia-smi in 85 ms")
        slow = judge_tool(GpuAnswer(SMI, reading, 2.4), ADA)
        assert (slow.state, slow.evidence) == ("warn", "/usr/bin/nvidia-smi takes 2.4 s")
        assert "persistence mode" in (slow.hint or "")

    def test_a_late_tool_may_only_be_slow(self) -> None:
        late = judge_tool(GpuAnswer(SMI, None, 3.0, is_late=True), ADA)
        assert (late.state, late.evidence) == ("fail", f"{SMI} did not answer within 3 s and was ended")
        assert "may only be slow" in (late.hint or "")

    def test_a_hung_one_is_not_called_again(self) -> None:
        hung = judge_tool(GpuAnswer(SMI, GpuReading(problem=read_problem(["hung 935 D"], 75))), ADA)
        assert hung.state == "fail"
        assert "still hangs" in hung.evidence
        assert "hung 935 D" in hung.evidence
        assert "reboot" in (hung.hint or "")

    def test_sleeping_cards_are_left_asleep(self) -> None:
        answer = GpuAnswer(SMI, GpuReading(problem=read_problem(["suspended"], 76)))
        assert judge_tool(answer, ADA).state == "pass"
        assert judge_driver(answer, ADA, "ops").state == "skip"

    def test_no_tool_counts_only_where_gpus_are_declared(self) -> None:
        none = GpuAnswer("", GpuReading(problem=read_problem([], 127)))
        assert judge_tool(none, ADA).state == "fail"
        assert judge_tool(none, Machine("bora", "host", "bora.lan")).state == "skip"

    @pytest.mark.parametrize(
        ("lines", "code", "evidence", "hint"),
        [
            (
                ["Failed to initialize NVML: Driver/library version mismatch"],
                18,
                "version mismatch",
                "reboot",
            ),
            (["No devices were found"], 6, "sees no GPU", "lspci"),
            (["Failed to initialize NVML: Insufficient Permissions"], 4, "no permission", "add ops to"),
            (["NVIDIA-SMI couldn't find libnvidia-ml.so library"], 12, "missing", "reinstall"),
        ],
    )
    def test_problems_of_the_driver(self, lines: list[str], code: int, evidence: str, hint: str) -> None:
        answer = GpuAnswer(SMI, GpuReading(problem=read_problem(lines, code)), 0.1)
        assert judge_tool(answer, ADA).state == "pass"
        driver = judge_driver(answer, ADA, "ops")
        assert driver.state == "fail"
        assert evidence in driver.evidence
        assert hint in (driver.hint or "")

    def test_cards(self) -> None:
        both = judge_driver(GpuAnswer(SMI, GpuReading((card(0), card(1)))), ADA, "ops")
        assert (both.state, both.evidence) == ("pass", "550.54.15, 2 GPUs: NVIDIA GeForce RTX 4090")
        one = judge_driver(GpuAnswer(SMI, GpuReading((card(0),))), ADA, "ops")
        assert (one.state, one.evidence) == (
            "warn",
            "550.54.15, 1 GPU: NVIDIA GeForce RTX 4090; the file declares 2",
        )
        fault = GpuFault("00000000:02:00.0", "lost", "GPU 00000000:02:00.0: lost, reboot needed")
        lost = judge_driver(GpuAnswer(SMI, GpuReading((card(0),), (fault,))), ADA, "ops")
        assert (lost.state, lost.evidence) == ("fail", "GPU 00000000:02:00.0: lost, reboot needed")

    def test_persistence(self) -> None:
        assert judge_persistence((True, True)).state == "pass"
        assert judge_persistence((True, False)).evidence.startswith("off on 1 of 2 GPUs")
        assert judge_persistence((False,)).state == "warn"
        assert judge_persistence((Unknown("N/A"),)).state == "skip"
        assert judge_persistence(()).state == "skip"

    def test_every_problem_has_a_hint(self) -> None:
        for code in GpuProblem.__annotations__ and ("cannot_run", "killed", "nvml_failed", "unreadable"):
            answer = GpuAnswer(SMI, GpuReading(problem=GpuProblem(code, "words: advice", "its own text")))
            outcomes = [judge_tool(answer, ADA), judge_driver(answer, ADA, "ops")]
            failed = [outcome for outcome in outcomes if outcome.state == "fail"]
            assert failed
            assert all(outcome.hint and "its own text" in outcome.evidence for outcome in failed)


class TestAmd:
    TOOL = "/opt/rocm/bin/amd-smi"
    CARDS = tuple(
        GpuCard(index, name="AMD Instinct MI300X", driver="6.12.12", vendor="amd") for index in (0, 1)
    )

    def test_the_tool(self) -> None:
        good = judge_amd_tool(AmdAnswer(self.CARDS, tool=self.TOOL, took_s=0.52))
        assert (good.state, good.evidence) == ("pass", f"{self.TOOL} in 520 ms")
        assert judge_amd_tool(AmdAnswer(self.CARDS)).state == "warn"
        late = judge_amd_tool(AmdAnswer(self.CARDS, tool=self.TOOL, is_late=True))
        assert (late.state, late.evidence) == ("fail", f"{self.TOOL} did not answer within 3 s and was ended")

    @pytest.mark.parametrize(
        ("line", "exit_code", "state", "evidence", "hint"),
        [
            ("hung 935 D", 75, "fail", "hangs since an earlier call", "reboot"),
            ("", 76, "pass", "not called: a card sleeps", ""),
            ("", 124, "fail", "did not answer within its time limit", "dmesg"),
            (
                "Unable to open /dev/kfd: Permission denied",
                1,
                "warn",
                "no permission for /dev/kfd",
                "render and",
            ),
            ("ModuleNotFoundError: No module named 'amdsmi'", 1, "warn", "cannot run; it says", "see what"),
        ],
    )
    def test_the_tools_own_trouble(
        self, line: str, exit_code: int, state: str, evidence: str, hint: str
    ) -> None:
        problem = read_amd_problem("amd-smi", [line], exit_code)
        outcome = judge_amd_tool(AmdAnswer(self.CARDS, tool=self.TOOL, tool_problem=problem))
        assert outcome.state == state
        assert evidence in outcome.evidence
        assert hint in (outcome.hint or "") or state == "pass"

    def test_the_driver(self) -> None:
        both = judge_amd_driver(AmdAnswer(self.CARDS), 2)
        assert (both.state, both.evidence) == ("pass", "amdgpu 6.12.12, 2 GPUs: AMD Instinct MI300X")
        one = judge_amd_driver(AmdAnswer(self.CARDS[:1]), 2)
        assert (one.state, one.evidence[-19:]) == ("warn", "; the file declares 2"[-19:])
        unbound = judge_amd_driver(
            AmdAnswer(problem=GpuProblem("driver_not_running", NOT_LOADED, "0000:03:00.0")), 1
        )
        assert (unbound.state, unbound.evidence) == ("fail", "amdgpu driver not loaded (0000:03:00.0)")
        assert "modprobe amdgpu" in (unbound.hint or "")


class TestEngines:
    @pytest.mark.parametrize(
        ("kind", "state"),
        [
            ("refused", "pass"),
            ("forbidden", "warn"),
            ("timeout", "pass"),
            ("protocol", "pass"),
            ("lost", "fail"),
        ],
    )
    def test_forwarding(self, kind: str, state: str) -> None:
        assert judge_forwarding(11434, HttpFailure(kind, "ada: gone")).state == state  # type: ignore[arg-type]
        assert judge_forwarding(11434, None).state == "pass"

    @pytest.mark.parametrize(
        ("state", "verdict"),
        [
            ("ok", "pass"),
            ("busy", "warn"),
            ("down", "fail"),
            ("unauthorized", "fail"),
            ("not_an_engine", "fail"),
        ],
    )
    def test_states(self, state: str, verdict: str) -> None:
        reading = EngineReading("ollama", 11434, state, error=None if state == "ok" else "why")  # type: ignore[arg-type]
        assert judge_engine(OLLAMA, reading, 3.0).state == verdict
        assert judge_engine(OLLAMA, None, 3.0).state == "fail"


class TestAddress:
    REFUSED = LinkError("connect", "ada.lan:11434: connection refused; is sshd running there?")
    SILENT = LinkError("connect", "ada.lan:11434: no answer within 3 s; does a firewall drop the port?")

    def judge(self, error: LinkError, own: EngineReading | None, listening: object) -> tuple[str, str, str]:
        found = judge_address("ada.lan:11434", OLLAMA, error, own, listening)  # type: ignore[arg-type]
        return found.state, found.evidence, found.hint or ""

    @pytest.mark.parametrize("bound", [("127.0.0.1",), ("::1",), ("127.0.0.1", "::1"), Unknown("not asked")])
    def test_loopback_only(self, bound: object) -> None:
        state, evidence, hint = self.judge(self.REFUSED, UP, bound)
        assert state == "warn"
        assert " only, and scripts get ada.lan:11434" in evidence
        assert "OLLAMA_HOST=0.0.0.0" in hint
        assert "no login" in hint

    def test_a_firewall_is_not_taken_for_the_loopback(self) -> None:
        for error, bound in (
            (self.SILENT, ("0.0.0.0",)),
            (self.REFUSED, ("::",)),
            (self.SILENT, Unknown("x")),
        ):
            state, evidence, hint = self.judge(error, UP, bound)
            assert state == "warn"
            assert "though Ollama answers on the machine" in evidence
            assert "OLLAMA_HOST" not in hint
            assert "firewall" in hint

    def test_a_name_that_scripts_cannot_resolve(self) -> None:
        error = LinkError("resolve", "ada.lan: name not found; check DNS")
        state, _, hint = self.judge(error, UP, ())
        assert state == "fail"
        assert "network.hostname" in hint

    def test_what_answers_there(self) -> None:
        assert judge_answer("ada.lan:11434", OLLAMA, UP).state == "pass"
        other = EngineReading("ollama", 11434, "not_an_engine", error="a web page (nginx)")
        assert judge_answer("ada.lan:11434", OLLAMA, other).state == "warn"


class TestSystem:
    @pytest.mark.parametrize(
        ("printed", "state", "evidence"),
        [
            (b"1700001000.050000000", "pass", "within 0.05 s of ours"),
            (b"1700001001.500000000", "pass", "within 1.5 s of ours"),
            (b"1700001000", "pass", "within 1.0 s of ours"),
            (b"1700001000.%N", "pass", "within 1.0 s of ours"),
            (b"1700001003.450000000", "warn", "3.4 s ahead of ours (± 0.05 s)"),
            (b"1700000940.250000000", "warn", "59.8 s behind ours (± 0.05 s)"),
            (b"1700004600.000000000", "fail", "60 min ahead of ours (± 0.05 s)"),
            (b"Tue Mar 10", "skip", "date printed 'Tue Mar 10'"),
            (b"", "skip", "no date on the machine"),
        ],
    )
    def test_clock(self, printed: bytes, state: str, evidence: str) -> None:
        found = judge_clock(printed, 1_700_001_000.0, 1_700_001_000.1)
        assert (found.state, found.evidence) == (state, evidence)

    def test_a_slow_answer_is_no_skew(self) -> None:
        found = judge_clock(b"1700000002.400000000", 1_700_000_000.0, 1_700_000_002.5)
        assert found.state == "pass"

    def test_a_clock_that_was_never_set(self) -> None:
        found = judge_clock(b"7200.000000000", 1_700_000_000.0, 1_700_000_000.1)
        assert (found.state, found.evidence) == ("fail", "was never set: it counts from 1970")

    def test_journal(self) -> None:
        readable, empty = JournalAnswer("readable", "x"), JournalAnswer("empty")
        refused, none = JournalAnswer("no_permission", "Hint: …"), JournalAnswer("no_tool")
        assert judge_journal(readable, readable, OPS).state == "pass"
        assert (
            judge_journal(readable, empty, OPS).evidence == "kernel log readable, no entry of a unit `ollama`"
        )
        assert judge_journal(refused, None, OPS).hint == (
            "let it: sudo usermod -aG systemd-journal ops (or group adm; counts from the next login)"
        )
        assert judge_journal(none, none, OPS).state == "skip"

    def test_disks(self) -> None:
        rw, ro = RootMount("/dev/sda1", "ext4", False), RootMount("/dev/sda1", "ext4", True)

        def use(percent: int, mount: str = "/") -> DiskUse:
            return DiskUse(mount, "/dev/sda1", 1000 << 20, percent * (10 << 20), (100 - percent) * (10 << 20))

        assert judge_disks(DisksReading((use(95),)), rw).state == "pass"
        full = judge_disks(DisksReading((use(40), use(96, "/models"))), rw)
        assert (full.state, full.evidence) == ("warn", "/models is 96 % full (40.0 GiB free)")
        assert judge_disks(DisksReading((use(100),)), rw).state == "fail"
        assert judge_disks(DisksReading((use(10),)), ro).evidence == "/ is mounted read-only (ext4)"
        assert judge_disks(Unknown("df did not answer"), rw).state == "warn"


def test_advice_is_what_follows_the_first_semicolon() -> None:
    assert split_advice("ada:22: refused; is sshd there? see x; or y") == (
        "ada:22: refused",
        "is sshd there? see x; or y",
    )
    assert split_advice("ada:22: refused") == ("ada:22: refused", "")


def test_a_broken_file_fails_and_everything_else_needs_it() -> None:
    problems = [
        ConfigProblem("/m/bad.yaml", 7, "network.hostname", "is missing."),
        ConfigProblem("/m/bad.yaml", 9, "models", "is missing."),
    ]
    assert judge_broken_file(problems).evidence == "/m/bad.yaml:7: network.hostname: is missing. (and 1 more)"
    (checkup,) = broken_checkups(problems)
    assert (checkup.name, checkup.verdict, checkup.is_done) == ("bad.yaml", "fail", True)
    assert {result.evidence for result in checkup.results[1:]} == {"needs file"}
