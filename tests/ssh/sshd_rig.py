"""A rig of real OpenSSH servers: one `sshd` process per loopback address, so that each can be frozen,
killed or restarted alone. Runs as root and as an ordinary user (who can then log in only as himself).

The machine's tools are stand-ins: `nvidia-smi` is a shell script in a PATH of its own, Ollama a small
HTTP server on the loopback.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import itertools
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from fleettui.model.machine import EngineEndpoint, Machine, SshSettings
from fleettui.net.settings import ConnectorSettings

MARKER = "FLEETTUI_RIG"
STAND_IN_NVIDIA_SMI = Path(__file__).with_name("nvidia_smi_stand_in.sh")


def find_sshd() -> str:
    """Path of the server; its absence fails the test, it is never skipped over."""
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        raise RuntimeError("sshd not found: install openssh-server (these tests run against the real one)")
    return found


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0, what: str = "condition") -> None:
    """Poll a condition in a blocking test helper."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout_s} s")
        time.sleep(0.02)


def run_tool(*command: str, **environment: str) -> str:
    """Run one of OpenSSH's client tools; its output."""
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}, timeout=20
    )
    return run.stdout


@functools.cache
def keygen(kind: str = "ed25519", passphrase: str = "", *, number: int = 0) -> tuple[bytes, str]:
    """A key pair (private file, public line), made once per kind and number."""
    del number
    folder = Path(f"/tmp/fleettui-keygen-{uuid.uuid4().hex}")
    folder.mkdir(mode=0o700)
    try:
        command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "rig", "-f", str(folder / "key")]
        if kind == "rsa":
            command += ["-b", "2048"]
        subprocess.run(command, check=True)
        return (folder / "key").read_bytes(), (folder / "key.pub").read_text().strip()
    finally:
        shutil.rmtree(folder)


@functools.cache
def why_no_namespace() -> str | None:
    """Why this test run cannot give a server files of its own under /etc; None: it can."""
    if os.getuid() != 0:
        return "needs root: sshd takes the login shell from /etc/passwd"
    if shutil.which("unshare") is None:
        return "needs unshare(1): sshd takes the login shell from /etc/passwd"
    run = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True, text=True)
    return None if run.returncode == 0 else f"needs a mount namespace: {run.stderr.strip()}"


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@dataclass
class SshdServer:
    """One machine: an sshd process with its own address, host key, log and tools."""

    folder: Path
    address: str
    port: int
    options: dict[str, str]
    host_keys: tuple[str, ...] = ("ed25519",)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: subprocess.Popen[bytes] | None = None
    key_number: int = 0
    etc: dict[str, str] = field(default_factory=dict)
    """Files that this server sees in place of those of this computer (`/etc/passwd`), by path."""
    _log_start: int = 0

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.folder / "sshd.log"

    @property
    def where(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def host_key_line(self) -> str:
        """`type base64` of the first host key."""
        return self.public_key(self.host_keys[0])

    def public_key(self, kind: str) -> str:
        return " ".join((self.folder / f"host_{kind}.pub").read_text().split()[:2])

    def fingerprint(self, kind: str | None = None) -> str:
        path = self.folder / f"host_{kind or self.host_keys[0]}.pub"
        return run_tool("ssh-keygen", "-lf", str(path)).split()[1]

    def write_host_keys(self, number: int) -> None:
        """Host keys of a number: another number is another key."""
        self.key_number = number
        for kind in self.host_keys:
            private, public = keygen(kind, number=number)
            path = self.folder / f"host_{kind}"
            path.write_bytes(private)
            path.chmod(0o600)
            path.with_suffix(".pub").write_text(public + "\n")

    def start(self) -> None:
        """Start and wait until it listens."""
        config = {
            "ListenAddress": self.where,
            "PidFile": "none",
            "UsePAM": "no",
            "UseDNS": "no",
            "StrictModes": "no",
            "MaxStartups": "500:30:500",
            "MaxSessions": "64",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "LogLevel": "DEBUG2",
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            "SetEnv": f"PATH={self.folder}/bin:/usr/bin:/bin HOME={self.folder}/home {MARKER}={self.mark} "
            f"{MARKER}_DIR={self.folder}",
        } | self.options
        lines = [f"{key} {value}" for key, value in config.items()]
        lines += [f"HostKey {self.folder}/host_{kind}" for kind in self.host_keys]
        (self.folder / "sshd.conf").write_text("\n".join(lines) + "\n")
        self._log_start = len(self.log_text())
        # -E and not -e: with -e the debug lines of a session go to the client's stderr.
        command = [find_sshd(), "-D", "-E", str(self.log_path), "-f", str(self.folder / "sshd.conf")]
        if self.etc:
            mounts = []
            for path, text in self.etc.items():
                own = self.folder / path.strip("/").replace("/", "-")
                own.write_text(text)
                mounts.append(f"mount --bind {own} {path} && ")
            command = ["unshare", "-m", "sh", "-c", "".join(mounts) + 'exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(self._is_listening, what=f"sshd on {self.where}; log: {self.log_text()[-400:]}")

    def _is_listening(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"sshd ended: {self.log_text()[-800:]}")
        return f"Server listening on {self.address} port {self.port}" in self.log_text()[self._log_start :]

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def clear_log(self) -> None:
        """Forget what was logged; the server appends."""
        os.truncate(self.log_path, 0)

    def processes(self) -> list[psutil.Process]:
        """The sshd processes: listener and one or two per connection."""
        found = []
        with contextlib.suppress(psutil.NoSuchProcess):
            listener = psutil.Process(self.pid)
            found.append(listener)
            for process in listener.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                    if process.name().startswith("sshd"):
                        found.append(process)
        return found

    def _signal(self, processes: list[psutil.Process], number: signal.Signals) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def remote_processes(self) -> list[psutil.Process]:
        """Whatever runs in sessions of this server, orphans too (found by a variable sshd sets)."""
        wanted = f"{MARKER}={self.mark}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
                if wanted in variables and not process.name().startswith("sshd"):
                    found.append(process)
        return found

    def remote_commands(self) -> list[list[str]]:
        """Command lines of the remote processes that live while they are listed."""
        lines = []
        for process in self.remote_processes():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                lines.append(process.cmdline())
        return lines

    def freeze(self) -> None:
        """SIGSTOP listener and connections: TCP stays up, nothing answers. Their shells go on."""
        self._signal(self.processes(), signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on. Shells too: one may have been stopped while it was still the sshd that became it."""
        self._signal([*self.processes(), *self.remote_processes()], signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL listener and connections, as a crash does."""
        if self.process is not None:
            self._signal(self.processes()[::-1], signal.SIGKILL)
            self.process.wait(10)

    def drop_connections(self) -> None:
        """Kill the connections; the listener stays."""
        self._signal(self.processes()[1:], signal.SIGKILL)

    def restart(self) -> None:
        """Kill and start on the same address."""
        self.kill()
        self.clear_log()
        self.start()

    def stop(self) -> None:
        """End everything that this server started."""
        self.kill()
        for process in self.remote_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def set_gpu(self, mode: str) -> None:
        """`ok`, `hang`, `absent`, `not_available`, `mismatch`, `lost`; see the script."""
        tool = self.folder / "bin" / "nvidia-smi"
        if mode == "absent":
            tool.unlink(missing_ok=True)
            return
        (self.folder / "gpu-mode").write_text(mode)
        if not tool.exists():
            shutil.copy(STAND_IN_NVIDIA_SMI, tool)
            tool.chmod(0o755)


class OllamaStandIn:
    """Answers like Ollama on 127.0.0.1; counts connections and requests."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.answers: dict[str, object] = {
            "/api/version": {"version": "0.12.3"},
            "/api/ps": {"models": []},
            "/api/tags": {"models": []},
        }
        self.requests: list[str] = []
        self.posted: list[tuple[str, bytes]] = []
        """(path, body), each POST beside its place in `requests`."""
        self.connections = 0
        self.close_after_answer = False
        """Close without saying so in the header."""
        self.is_chunked = False
        self.gate = threading.Event()
        """Cleared: answers wait."""
        self.gate.set()
        self._open: set[socket.socket] = set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one segment an answer: header and body apart meet the 40 ms of a delayed ACK

            def setup(self) -> None:
                outer.connections += 1
                outer._open.add(self.request)
                super().setup()

            def finish(self) -> None:
                outer._open.discard(self.request)
                super().finish()

            def do_GET(self) -> None:
                outer.requests.append(self.path)
                outer.gate.wait(30)
                answer = outer.answers.get(self.path)
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Type", "application/json")
                if outer.is_chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for start in range(0, len(body), 7):
                        part = body[start : start + 7]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                if outer.close_after_answer:
                    self.close_connection = True

            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posted.append((self.path, sent))
                self.do_GET()

            def log_message(self, *_: object) -> None: ...

        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
            daemon_threads = True

            def handle_error(self, *_: object) -> None: ...

        self._server = Server((address, port), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        for kept in tuple(self._open):  # as a server that ends does: nobody goes on asking it
            with contextlib.suppress(OSError):
                kept.shutdown(socket.SHUT_RDWR)


class SshdRig:
    """Servers, one client account with keys and known_hosts, and what to clean up."""

    _numbers = itertools.count(1)

    def __init__(self, folder: Path, worker: int = 0) -> None:
        self.folder = folder
        self.worker = worker
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.home = folder / "client"
        self.ssh_folder = self.home / ".ssh"
        self.ssh_folder.mkdir(parents=True, mode=0o700)
        self.known_hosts = self.ssh_folder / "known_hosts"
        self.ssh_config = self.ssh_folder / "config"
        self.servers: list[SshdServer] = []
        self._stand_ins: list[OllamaStandIn] = []
        self.identity = self.write_key("id_ed25519")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)

    def write_key(self, name: str, kind: str = "ed25519", passphrase: str = "", number: int = 100) -> Path:
        """A key pair in the client's ~/.ssh."""
        private, public = keygen(kind, passphrase, number=number)
        path = self.ssh_folder / name
        path.write_bytes(private)
        path.chmod(0o600)
        path.with_name(name + ".pub").write_text(public + "\n")
        return path

    def start(
        self,
        *,
        options: dict[str, str] | None = None,
        host_keys: tuple[str, ...] = ("ed25519",),
        is_trusted: bool = True,
        gpu: str = "ok",
        shell: str | None = None,
        etc: dict[str, str] | None = None,
    ) -> SshdServer:
        """Start a machine; `is_trusted`: its host key goes into known_hosts.

        `shell`: the account's login shell there; `etc`: more files of its own. Both need `why_no_namespace`.
        """
        number = next(self._numbers)
        address = f"127.77.{self.worker + 1}.{number % 250 + 1}"
        folder = self.folder / f"machine{number}"
        for name in ("bin", "home"):
            (folder / name).mkdir(parents=True)
        server = SshdServer(folder, address, free_port(address), options or {}, host_keys)
        server.etc = dict(etc or {})
        if shell is not None:
            server.etc["/etc/passwd"] = self.passwd_with(shell, folder / "home")
        server.write_host_keys(number=len(self.servers))
        (folder / "authorized_keys").write_text(self.identity.with_suffix(".pub").read_text())
        server.set_gpu(gpu)
        self.servers.append(server)
        server.start()
        if is_trusted:
            self.trust(server)
        return server

    def passwd_with(self, shell: str, home: Path) -> str:
        """This computer's /etc/passwd with another shell and home for our account."""
        lines = []
        for line in Path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] == self.user:
                fields[5:] = [str(home), shell]
            lines.append(":".join(fields))
        return "\n".join(lines) + "\n"

    def trust(self, server: SshdServer, name: str | None = None) -> None:
        """Add the host key to known_hosts."""
        with self.known_hosts.open("a") as file:
            file.write(f"{name or f'[{server.address}]:{server.port}'} {server.host_key_line}\n")

    def ollama(self, address: str = "127.0.0.1") -> OllamaStandIn:
        """An Ollama stand-in, closed with the rig."""
        stand_in = OllamaStandIn(address)
        self._stand_ins.append(stand_in)
        return stand_in

    def machine(
        self, server: SshdServer, name: str = "ada", *, engine_port: int = 11434, **ssh: object
    ) -> Machine:
        """A machine file for a server."""
        settings = replace(SshSettings(port=server.port), **ssh)  # type: ignore[arg-type]
        return Machine(
            name=name,
            role="gpu-host",
            hostname=server.address,
            port=engine_port,
            ssh=settings,
            engines=(EngineEndpoint("ollama", engine_port),),
        )

    def settings(self, **changes: object) -> ConnectorSettings:
        """The client account's settings; nothing of the real user or of /etc is read."""
        settings = ConnectorSettings.from_environment({"HOME": str(self.home)})
        base = replace(
            settings, ssh_config_files=(str(self.ssh_config),), global_known_hosts_files=(), agent_path=None
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def close(self) -> None:
        for stand_in in self._stand_ins:
            stand_in.close()
        for server in self.servers:
            server.stop()


@contextlib.contextmanager
def black_hole(address: str, port: int = 0) -> Iterator[int]:
    """A port that never answers a SYN: its accept queue is full (Linux drops further ones)."""
    with socket.socket() as listener:
        listener.bind((address, port))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex((address, port))
            yield port
        finally:
            for filler in fillers:
                filler.close()
