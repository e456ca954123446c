"""A line of known_hosts belongs to the hosts that `ssh-keygen -F` finds it for."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from sshd_rig import keygen, run_tool

from fleettui.net.host_keys import KnownHosts

KEY = " ".join(keygen("ed25519", number=400)[1].split()[:2])
OTHER = " ".join(keygen("rsa", number=401)[1].split()[:2])
NAMES = (
    "gpu-a",
    "gpu-b",
    "GPU-A",
    "[gpu-a]:2222",
    "[gpu-b]:2222",
    "10.0.0.1",
    "[10.0.0.1]:2200",
    "2001:db8::1",
)

LINES = {
    "one name": f"gpu-a {KEY}",
    "several names": f"gpu-a,10.0.0.1,2001:db8::1 {KEY} ops@lab",
    "upper case": f"GPU-A {KEY}",
    "another port": f"[gpu-a]:2222,[10.0.0.1]:2200 {KEY}",
    "a star": f"gpu-* {KEY}",
    "a question mark": f"gpu-? {KEY}",
    "everything": f"* {KEY}",
    "a star for ports": f"[gpu-*]:* {KEY}",
    "a negation": f"gpu-*,!gpu-b {KEY}",
    "a negation first": f"!gpu-b,* {KEY}",
    "only a negation": f"!gpu-b {KEY}",
    "a net": f"10.0.0.* {KEY}",
    "dos line ends": f"gpu-a {KEY}\r",
    "tabs and blanks": f"  gpu-a\t{KEY}  ",
    "a comment in the line": f"gpu-a {KEY} # of the lab",
    "a comment line": f"# gpu-a {KEY}",
    "two lines": f"gpu-a {KEY}\ngpu-a {OTHER}\ngpu-b {OTHER}",
    "an authority": f"@cert-authority gpu-* {KEY}",
    "a revoked key": f"@revoked * {KEY}",
    "no key": "gpu-a",
    "no known type": "gpu-a ssh-foo AAAA",
    "a bracket is no pattern": f"gpu-[ab] {KEY}",
    "odd lines around": f"justonetoken\n|2|abc|def {KEY}\n\ngpu-a {KEY}\n@weird gpu-b {KEY}",
}


def found_by_ssh_keygen(path: Path, name: str) -> list[tuple[str, str]]:
    """(marker, key) of each line for a name."""
    command = ["ssh-keygen", "-F", name, "-f", str(path)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    found = []
    for line in run.stdout.splitlines():
        words = line.split()
        if words and words[0] != "#":
            marker = words.pop(0) if words[0].startswith("@") else ""
            found.append((marker, " ".join(words[1:3])))
    return found


def found_by_us(path: Path, name: str) -> list[tuple[str, str]]:
    index = KnownHosts()
    index.add_file(str(path), path.read_bytes().decode("utf-8", "replace"))
    host, _, port = name.removeprefix("[").partition("]:")
    trust = index.trust_for(host, int(port) if port else 22, alias=None)
    marks = {"key": "", "authority": "@cert-authority", "revoked": "@revoked"}
    return [(marks[key.kind], f"{key.key_type} {base64.b64encode(key.blob).decode()}") for key in trust.keys]


@pytest.mark.parametrize("is_hashed", [False, True], ids=["plain", "hashed"])
@pytest.mark.parametrize("kind", LINES)
def test_a_line_is_for_whom_ssh_keygen_says(kind: str, is_hashed: bool, tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_bytes(LINES[kind].encode() + b"\n")
    if is_hashed:
        try:
            run_tool("ssh-keygen", "-q", "-H", "-f", str(path))
        except subprocess.CalledProcessError:
            pytest.skip("ssh-keygen hashes no such file")
    for name in NAMES:
        if is_hashed and name == "GPU-A":
            continue  # ssh puts the name into lower case before it looks, ssh-keygen does not
        assert sorted(found_by_us(path, name)) == sorted(found_by_ssh_keygen(path, name)), name


def test_five_megabytes_are_searched(tmp_path: Path) -> None:
    filler = "".join(
        f"host{number}.lan,10.1.{number // 250}.{number % 250} {KEY}\n" for number in range(48_000)
    )
    path = tmp_path / "known_hosts"
    path.write_text(f"{filler}gpu-a {OTHER}\n")
    assert path.stat().st_size > 5_000_000
    assert found_by_us(path, "gpu-a") == [("", OTHER)]
    assert found_by_us(path, "host47999.lan") == [("", KEY)]
