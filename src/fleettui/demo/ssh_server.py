"""The SSH port of a simulated machine: real key exchange and login; loops answer from the simulation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fleettui.demo.clock import DemoClock
from fleettui.demo.doctor_answers import PERMISSION_HINT, may_read_journal
from fleettui.demo.engine_server import EngineServer, whole_answer
from fleettui.demo.facts_answers import settings_text, sockets_text
from fleettui.demo.listeners import BACKLOG, LOOPBACK, LoopbackPort
from fleettui.demo.log_answers import journal_lines
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.openssh_manners import speak_as_openssh
from fleettui.demo.probe_answers import answer_section
from fleettui.demo.services import run_command
from fleettui.probes.frames import Section, encode_frame, parse_request
from fleettui.probes.loops import parse_loop_command

CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com",
           "aes256-ctr", "aes128-ctr")  # fmt: skip
MAX_LINE = 4096
FOLLOW_MARK = b"\x1e\n"
FOLLOW_PERIOD_S = 1.0
NOT_FOUND_EXIT = 127
CURL_REFUSED_EXIT = 7


def make_host_key(seed: int, name: str) -> asyncssh.SSHKey:
    """The machine's host key: from the seed, so that fingerprints in pictures stay the same."""
    secret = sha256(f"host key {seed} {name}".encode()).digest()
    pem = Ed25519PrivateKey.from_private_bytes(secret).private_bytes(
        Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
    )
    return asyncssh.import_private_key(pem)


class LoopSession(asyncssh.SSHServerSession[bytes]):
    """One channel. A loop's command is answered frame by frame, anything else ends with exit 127."""

    def __init__(self, machine: MachineSsh):
        self._machine = machine
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._command = ""
        self._token = ""
        self._buffer = b""

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def pty_requested(self, term_type: str, term_size: object, term_modes: object) -> bool:
        return True

    def session_started(self) -> None:
        loop = parse_loop_command(self._command)
        if loop is not None:
            self._token = loop[1]
            return
        if self._channel is not None:
            task = asyncio.get_running_loop().create_task(self._run_command(self._channel))
            self._machine.tasks.add(task)
            task.add_done_callback(self._machine.tasks.discard)

    async def _run_command(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        """The machine's shell knows how services are started and stopped, and nothing else."""
        machine = self._machine
        code = await run_command(machine.sides, machine.simulated, self._command)
        if code is not None:
            channel.exit(code)
            return
        name = machine.simulated.plan.name
        asked = self._command.split(" ", 1)[0][:60]
        told = f"{asked}: not found" if asked else "it has no shell"
        channel.write_stderr(f"{name} is a simulated machine: {told}\r\n".encode())
        channel.exit(NOT_FOUND_EXIT)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if not self._token or self._channel is None:
            return
        self._buffer += data
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            request = parse_request(line)
            if request is not None and request[1][:1] and request[1][0].startswith("follow:"):
                self._start_following(request[1][0])
            elif request is not None:
                self._channel.write(self._machine.frame(self._token, *request))
        if len(self._buffer) > MAX_LINE:
            self._buffer = b""

    def _start_following(self, section: str) -> None:
        """Journal lines without end, as `follow` of the logs loop has them."""
        if self._channel is None:
            return
        _, _, argument = section.partition(":")
        seconds, _, unit = argument.partition(":")
        self._channel.write(FOLLOW_MARK)
        if not may_read_journal(self._machine.simulated):
            self._channel.write(f"{PERMISSION_HINT}\n".encode())
            return
        self._send_lines(time.time() - float(seconds if seconds.isdigit() else 0), unit)

    def _send_lines(self, start_s: float, unit: str) -> None:
        if self._channel is None or self._channel.is_closing():
            return
        now = time.time()
        for line in journal_lines(self._machine.simulated, start_s, now, unit):
            self._channel.write(f"{line}\n".encode())
        asyncio.get_running_loop().call_later(FOLLOW_PERIOD_S, self._send_lines, now, unit)

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel = None

    def eof_received(self) -> bool:
        if self._channel is not None:
            self._channel.exit(0)
        return False


class MachineLogin(asyncssh.SSHServer):
    """One connection: who may log in, and where to it may forward."""

    def __init__(self, machine: MachineSsh):
        self._machine = machine
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        speak_as_openssh(conn)
        self._machine.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._machine.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        is_user = username == self._machine.simulated.plan.user
        return is_user and key.public_data == self._machine.client_key.public_data

    def session_requested(self) -> LoopSession:
        return LoopSession(self._machine)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        """Only to the machine's own engines."""
        machine = self._machine
        is_engine = machine.engine_on(dest_port) and dest_host in (LOOPBACK, "localhost", "::1")
        if machine.refuses_forwarding or not is_engine:
            raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        return True


class MachineSsh:
    """The SSH port of one machine."""

    def __init__(
        self,
        simulated: SimulatedMachine,
        engine: EngineServer,
        sides: Sequence[EngineServer],
        clock: DemoClock,
        client_key: asyncssh.SSHKey,
        seed: int,
    ):
        self.simulated = simulated
        self.engine = engine
        self.sides = sides
        self.clock = clock
        self.client_key = client_key
        self.host_key = make_host_key(seed, simulated.plan.name)
        self.port = LoopbackPort()
        self.refuses_forwarding = simulated.plan.refuses_forwarding
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Commands in work."""
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._options: asyncssh.SSHServerConnectionOptions | None = None

    def frame(self, token: str, seq: int, sections: tuple[str, ...]) -> bytes:
        """The answer to one request line."""
        now = self.clock.now()
        self.simulated.advance_to(now)
        answers: dict[str, Section] = {}
        for section in sections:
            name = section.partition(":")[0]
            if name == "get":
                answers[name] = self._fetch(section)
                continue
            if name == "sockets":
                ports = self.port.number, self.engine.port.number
                sides = [side.client_count for side in self.sides]
                listening = sockets_text(self.simulated, *ports, self.engine.client_count, sides)
                answers[name] = Section(0, listening)
                continue
            if name == "ollama":
                answers[name] = Section(0, settings_text(self.simulated, self.engine.port.number))
                continue
            code, text = answer_section(self.simulated, section, now)
            answers[name] = Section(code, text.encode())
        return encode_frame(token, seq, answers)

    def _fetch(self, section: str) -> Section:
        """What the machine's own curl would print for `get:<port>/<path>`."""
        port, _, path = section.removeprefix("get:").partition("/")
        engine = self.engine_on(int(port)) if port.isdigit() else None
        if engine is None:
            return Section(CURL_REFUSED_EXIT, b"")
        return Section(0, whole_answer(engine.api.read("/" + path), engine.date_s()))

    def engine_on(self, port: int) -> EngineServer | None:
        """Which engine listens there."""
        return next((one for one in (self.engine, *self.sides) if one.port.number == port), None)

    async def open(self) -> None:
        """Listens."""
        if self._options is None:
            self._options = asyncssh.SSHServerConnectionOptions(
                server_factory=lambda: MachineLogin(self),
                server_host_keys=[self.host_key],
                encoding=None,
                line_editor=False,
                allow_scp=False,
                agent_forwarding=False,
                x11_forwarding=False,
                gss_host=None,
                compression_algs=["none"],
                encryption_algs=CIPHERS,
                login_timeout=30,
            )  # fmt: skip
        sock = self.port.open_socket()
        self._acceptor = await asyncssh.listen(sock=sock, backlog=BACKLOG, options=self._options)

    def close(self, *, is_silent: bool = False, keep_port: bool = True) -> None:
        """Stops listening. Silent: connections stay and nothing is answered, as on a machine that hangs."""
        if keep_port:
            self.port.keep(is_silent)
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        for connection in list(self.connections):
            transport = _transport_of(connection)
            if not is_silent:
                connection.abort()
            elif transport is not None:
                transport.pause_reading()

    def resume(self) -> None:
        """Silent connections are answered again."""
        for connection in self.connections:
            transport = _transport_of(connection)
            if transport is not None:
                transport.resume_reading()


def _transport_of(connection: asyncssh.SSHServerConnection) -> asyncio.Transport | None:
    """The TCP transport below; asyncssh has no public way to stop reading."""
    transport = getattr(connection, "_transport", None)
    return transport if isinstance(transport, asyncio.Transport) else None
