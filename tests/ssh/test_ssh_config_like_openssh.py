"""The user's ssh_config means here what it means to `ssh -G`, form by form."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from fleettui.net.ssh_config import HostConfig, SshConfig

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ssh"
ACCOUNT = pwd.getpwuid(os.getuid())
HOME = ACCOUNT.pw_dir
"""ssh takes it from the account, whatever $HOME says."""

FORMS = {
    "plain": "Host gpu-a\n HostName 192.0.2.9\n Port 7\n User ops\n",
    "an equals sign": "Host=gpu-a\nPort=2222\nUser = ops\n",
    "tabs": "Host\tgpu-a\n\tPort\t2222\n",
    "dos line ends": "Host gpu-a\r\n Port 2222\r\n User ops\r\n",
    "blanks at the end": "Host gpu-a   \n Port 2222   \n",
    "a comment behind a value": "Host gpu-a\n Port 2222 # lab\n HostName a # b\n",
    "a hash inside a word": "Host gpu-a\n User a#b\n",
    "a quote inside a comment": 'Host gpu-a # "unfinished\n Port 9\n',
    "any case of a key": "HOST gpu-a\n pORT 9\n",
    "double quotes": 'Host "gpu-a" gpu-b\n User "al ice"\n',
    "single quotes": "Host gpu-a\n User 'al ice'\n",
    "escaped quotes": 'Host gpu-a\n User "a\\"b"\n',
    "an escaped blank": "Host gpu-a\n User a\\ b\n",
    "the first value wins": "Host *\n Port 7\nHost gpu-a\n Port 8\n",
    "a negated pattern": "Host gpu-* !gpu-b\n User ops\n",
    "only a negated pattern": "Host !gpu-b\n User ops\n",
    "a comma is no separator of Host": "Host gpu-a,gpu-b\n User ops\n",
    "a question mark": "Host gpu-?\n Port 9\n",
    "case of a name counts": "Host GPU-A\n Port 9\n",
    "Host looks at the typed name": "Host gpu-a\n HostName gpu-b\nHost gpu-b\n Port 9\n",
    "HostName with a token": "Host gpu-a\n HostName %h.lan\n",
    "HostName with a percent sign": "Host gpu-a\n HostName a%%b\n",
    "an IPv6 address": "Host gpu-a\n HostName 2001:db8::1\n",
    "Match host with a list": "Match host gpu-a,gpu-b\n User ops\n",
    "Match host negated inside": "Match host *,!gpu-b\n User ops\n",
    "Match host by HostName": "Match host 192.0.2.9\n User late\nHost gpu-a\n HostName 192.0.2.9\n",
    "Match host after HostName": "Host gpu-a\n HostName 192.0.2.9\nMatch host 192.0.2.9\n User late\n",
    "Match host with a sign": "Match host=gpu-a\n Port 9\n",
    "Match keeps the case behind a sign": "User Bob\nMatch user=Bob\n Port 9\n",
    "Match with quotes": 'Match host "gpu-a,gpu-b" user "*"\n Port 9\n',
    "Match user": "User bob\nMatch user bob\n Port 9\n",
    "Match user without one": "Match user nobody-else\n Port 9\n",
    "Match localuser": "Match localuser nobody-else\n Port 9\nMatch localuser *\n Port 10\n",
    "Match originalhost": "Match originalhost gpu-a user bob\n Port 9\nMatch !originalhost gpu-b\n User x\n",
    "Match all": "Match all\n Port 9\n",
    "Match final": "Match final host gpu-a\n Port 9\nHost *\n Port 10\n",
    "Match final sees HostName": "Host gpu-a\n HostName 192.0.2.7\nMatch final host 192.0.2.7\n User fin\n",
    "Match final adds": "IdentityFile ~/a\nMatch final all\n IdentityFile ~/b\n",
    "Match canonical": "Match canonical all\n Port 9\n",
    "Match canonical in a final pass": "Match final\n User fin\nMatch canonical\n Port 9\n",
    "keys add up": "Host gpu-a\n IdentityFile ~/a\nHost gpu-*\n IdentityFile ~/b\n IdentityFile ~/a\n",
    "no key": "Host gpu-a\n IdentityFile none\n",
    "no key, then one": "Host gpu-a\n IdentityFile none\nHost *\n IdentityFile ~/x\n",
    "a key with a blank": 'Host gpu-a\n IdentityFile "/tmp/a b"\n IdentitiesOnly yes\n',
    "certificates": "Host gpu-a\n CertificateFile ~/.ssh/c\n CertificateFile none\n",
    "known_hosts files": "Host gpu-a\n UserKnownHostsFile ~/kh1 '/tmp/k h2'\n GlobalKnownHostsFile /a /b\n",
    "no known_hosts": "Host gpu-a\n UserKnownHostsFile none\n",
    "a jump": "Host gpu-a\n ProxyJump a@b:22,[::1]:33\n",
    "no jump": "Host gpu-a\n ProxyJump none\nHost *\n ProxyJump edge\n",
    "a jump before a command": "Host gpu-a\n ProxyJump edge\nHost *\n ProxyCommand nc x y\n",
    "a command before a jump": "Host gpu-a\n ProxyCommand nc x y\nHost *\n ProxyJump edge\n",
    "no command before a jump": "Host gpu-a\n ProxyCommand none\nHost *\n ProxyJump edge\n",
    "no jump before a command": "Host gpu-a\n ProxyJump none\nHost *\n ProxyCommand nc x y\n",
    "a command as it stands": 'Host gpu-a\n ProxyCommand nc -x "a b" x $HOME # y\n',
    "a command with a sign": "Host gpu-a\n ProxyCommand=nc x y\n",
    "an address to connect from": "Host gpu-a\n BindAddress 127.0.0.1\n AddressFamily inet6\n",
    "an alias of the key": "Host gpu-a\n HostKeyAlias rack7\n",
    "no agent": "Host gpu-a\n IdentityAgent none\n",
    "the usual agent": "Host gpu-a\n IdentityAgent SSH_AUTH_SOCK\n",
    "an agent's path": 'Host gpu-a\n IdentityAgent "~/Group Containers/x"\n',
    "an unknown word that shall be ignored": "IgnoreUnknown Use*,Foo\nHost gpu-a\n UseThing yes\n Port 9\n",
    "nothing that matters": "Host *\n ControlMaster auto\n ControlPath ~/%C\n RequestTTY yes\n"
    " RemoteCommand tmux\n LocalForward 1234 127.0.0.1:80\n"
    " StrictHostKeyChecking no\n ConnectTimeout 1m\n ForwardAgent yes\n",
    "an include that is not there": "Include /nonexistent/*\nHost gpu-a\n Port 9\n",
}


def expected(said: dict[str, list[str]], text: str) -> dict[str, object]:
    """What ssh says, in our words."""

    def one(key: str) -> str | None:
        return said.get(key, [None])[0]  # type: ignore[list-item]

    def paths(key: str) -> tuple[str, ...]:
        return tuple(value.replace("~", HOME, 1) for value in said.get(key, ()) if value != "none")

    is_named = "identityfile" in text.lower()
    agent = one("identityagent")
    return {
        "host_name": one("hostname"),
        "port": int(one("port") or 0),
        "user": one("user"),
        "proxy_jump": one("proxyjump"),
        "proxy_command": one("proxycommand"),
        "host_key_alias": one("hostkeyalias"),
        "identity_files": paths("identityfile") if is_named else None,
        "certificate_files": paths("certificatefile"),
        "is_identities_only": one("identitiesonly") == "yes",
        "identity_agent": agent,
        "address_family": one("addressfamily"),
        "bind_address": one("bindaddress"),
    }


def ours(found: HostConfig, user: str) -> dict[str, object]:
    """The same of ours, with what ssh fills in."""
    names = (
        "host_name port user proxy_jump proxy_command host_key_alias identity_files certificate_files "
        "is_identities_only identity_agent address_family bind_address"
    )
    values = {name: getattr(found, name) for name in names.split()}
    return values | {"port": found.port or 22, "user": found.user or user}


def ask_ssh(path: Path, alias: str) -> dict[str, list[str]] | None:
    """`ssh -G`, by key; None where this ssh refuses the file."""
    command = ["ssh", "-G", "-F", str(path), alias]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    if run.returncode:
        return None
    said: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        key, _, value = line.partition(" ")
        said.setdefault(key, []).append(value)
    return said


@pytest.mark.parametrize("form", FORMS)
def test_a_form_means_what_ssh_says(form: str, tmp_path: Path) -> None:
    text = FORMS[form]
    path = tmp_path / "config"
    path.write_bytes(text.encode())
    config = SshConfig(HOME)
    config.add_file(str(path))
    for alias in ("gpu-a", "gpu-b", "GPU-A"):
        said = ask_ssh(path, alias)
        assert said is not None, "this table has what every ssh accepts"
        found = config.settings_for(alias)
        want = expected(said, text)
        if want["identity_files"] and "/.ssh/id_" in str(want["identity_files"]):
            want["identity_files"] = None  # ssh shows its default keys where none is named
        assert ours(found, ACCOUNT.pw_name) == want, alias
        for key, files in (
            ("userknownhostsfile", found.known_hosts_files),
            ("globalknownhostsfile", found.global_known_hosts_files),
        ):
            if files is not None and key in said:
                shown = said[key][0].replace("~", HOME)
                assert " ".join(files) == ("" if shown == "none" else shown)
    assert config.problems == []


@pytest.mark.parametrize("sample", sorted(path.name for path in FIXTURES.glob("1[37]-*.txt")))
def test_a_sample_means_what_ssh_says(sample: str, tmp_path: Path) -> None:
    path = FIXTURES / sample
    config = SshConfig(HOME)
    config.add_file(str(path))
    said = ask_ssh(path, "gpu-a")
    if said is None:
        pytest.skip("this ssh is older than the sample")
    found = config.settings_for("gpu-a")
    assert (found.host_name, str(found.port or 22)) == (said["hostname"][0], said["port"][0])


def test_the_users_file_comes_before_the_systems(tmp_path: Path) -> None:
    """ssh -G reads one file only, so the order is that of ssh_config(5)."""
    user, system = tmp_path / "config", tmp_path / "ssh_config"
    user.write_text("Host gpu-a\n User ops\n IdentityFile ~/own\n")
    system.write_text("Host *\n User nobody\n Port 2200\n IdentityFile ~/common\nInclude more.d/*.conf\n")
    (tmp_path / "more.d").mkdir()
    (tmp_path / "more.d" / "lab.conf").write_text("Host gpu-a\n ProxyJump edge\n")
    config = SshConfig(HOME)
    for path in (user, system):
        config.add_file(str(path))
    found = config.settings_for("gpu-a")
    assert (found.user, found.port, found.proxy_jump) == ("ops", 2200, "edge")
    assert found.identity_files == (f"{HOME}/own", f"{HOME}/common")
    assert str(tmp_path / "more.d") in config.files, "a new file in there is noticed"


def test_includes_with_globs_agree_with_ssh(tmp_path: Path) -> None:
    folder = tmp_path / "config.d"
    folder.mkdir()
    (folder / "10-a.conf").write_text("Host gpu-a\n Port 7\n")
    (folder / "20-b.conf").write_text("Host gpu-*\n Port 8\n User ops\n")
    (folder / "nested").write_text("User nested\n")
    path = tmp_path / "config"
    path.write_text(
        f"Include {folder}/*.conf {folder}/missing\nMatch host gpu-b\n Include {folder}/nested\nUser last\n"
        "Host gpu-a\n User late\n"
    )
    config = SshConfig(HOME)
    config.add_file(str(path))
    for alias in ("gpu-a", "gpu-b", "other"):
        said = ask_ssh(path, alias)
        assert said is not None
        found = config.settings_for(alias)
        assert (str(found.port or 22)) == said["port"][0]
        if found.user:
            assert found.user == said["user"][0]
