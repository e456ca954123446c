"""Windows: command lines without anything a shell changes, and what is kept of an answer; any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.probes.windows import (
    NVIDIA_SMI_PLACES,
    clean_output,
    is_answer,
    is_windows_server,
    names_running,
    nvidia_smi_command,
)

ROW = b"0, GPU-a0, GTX 1060 3GB, 431.60, 3072, 1279, 1793, 2, 47, 10.08, 120.00, 8, P8, 00000000:01:00.0\r\n"
FIELDS = (
    "gpu:index:uuid:name:driver_version:memory.total:memory.used:memory.free:utilization.gpu:temperature.gpu"
    ":power.draw:power.limit:fan.speed:pstate:pci.bus_id"
)


@pytest.mark.parametrize(
    ("version", "is_windows"),
    [
        ("SSH-2.0-OpenSSH_for_Windows_9.5", True),
        ("OpenSSH_for_Windows_8.1", True),
        ("SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.5", False),
        ("SSH-2.0-dropbear_2022.83", False),
        ("", False),
        (None, False),
    ],
)
def test_the_version_line_tells(version: str | None, is_windows: bool) -> None:
    assert is_windows_server(version) == is_windows


@pytest.mark.parametrize("place", NVIDIA_SMI_PLACES)
@pytest.mark.parametrize(
    "section", ["gpu", FIELDS, "apps", "list", "version", "condition:index:ecc.mode.current"]
)
def test_no_quote_no_operator_no_blank_in_a_word(place: str, section: str) -> None:
    command = nvidia_smi_command(place, section)
    assert command is not None
    assert not set(command) & set("\"'`$&|;<>%^()@{}*?!\n\r\t")
    assert command.split(" ")[0] == place


@pytest.mark.parametrize(
    "section", ["ps", "xid", "find", "xml", "amd", "gpu:a&b", "gpu:a b", "gpu:", "gpu:a::b"]
)
def test_other_sections_send_nothing(section: str) -> None:
    command = nvidia_smi_command("nvidia-smi.exe", section)
    assert command is None or section == "gpu:"


@pytest.mark.parametrize(
    "stderr",
    [
        b'#< CLIXML\r\n<Objs Version="1.1"></Objs>',
        b"'nvidia-smi.exe' is not recognized as an internal or external command,\r\noperable program.\r\n",
        'Der Befehl "nvidia-smi.exe" ist entweder falsch geschrieben\r\n'.encode("cp850"),
        b"\xff\xfe\x00",
    ],
)
def test_what_a_shell_says_is_never_shown(stderr: bytes) -> None:
    assert clean_output(b"", stderr) == b""
    assert clean_output(ROW, stderr) == ROW.replace(b"\r", b"")
    assert not is_answer("gpu", clean_output(b"", stderr), 1)
    assert not is_answer("gpu", clean_output(stderr, b""), 1), "some versions print it on stdout"


@pytest.mark.parametrize(
    ("stdout", "exit_code"),
    [
        (ROW, 0),
        (ROW, 255),
        (ROW.replace(b"\r\n", b"\r\r\n"), 0),
        (b"\xef\xbb\xbf" + ROW, 0),
        (ROW.decode().encode("utf-16"), 0),
        (b"No devices were found\r\n", 6),
        (b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\r\n", 9),
        (b'Field "memory.free" is not a valid field to query.\r\n', 2),
    ],
)
def test_what_nvidia_smi_says_is_an_answer(stdout: bytes, exit_code: int) -> None:
    assert is_answer(FIELDS, clean_output(stdout), exit_code)


def test_the_list_of_tasks() -> None:
    assert names_running(b"Image Name   PID\r\nNVIDIA-SMI.exe  12 Services\r\n")
    assert not names_running(b"Image Name   PID\r\nsshd.exe  12 Services\r\n")


@given(st.binary(max_size=400), st.binary(max_size=200), st.integers(-1, 2**32))
def test_any_bytes(stdout: bytes, stderr: bytes, exit_code: int) -> None:
    payload = clean_output(stdout, stderr)
    is_answer("gpu", payload, exit_code)
    names_running(stdout)
    nvidia_smi_command("nvidia-smi.exe", "gpu:" + stderr.decode("latin-1"))
