"""The command line of OpenSSH for a machine: what the file says, word by word, and no weaker login."""

from __future__ import annotations

from itertools import pairwise

import pytest

from builders import make_machine
from fleettui.model.machine import SshSettings
from fleettui.net.errors import LinkError
from fleettui.net.host_keys import fingerprint_of, public_key_text
from fleettui.net.openssh import KEY_ALIAS, key_line, ssh_command, strict_config


def options(argv: tuple[str, ...]) -> list[str]:
    return [argv[place + 1] for place, word in enumerate(argv) if word == "-o"]


def test_what_the_file_leaves_out_is_left_to_the_operators_configuration() -> None:
    argv = ssh_command(make_machine("ada"))
    assert argv[:2] == ("ssh", "-t")
    assert argv[-2:] == ("--", "ada.lan")
    assert not {"-l", "-p", "-i", "-J", "-F"} & set(argv)


def test_what_the_file_says_is_given_each_as_a_word_of_its_own() -> None:
    ssh = SshSettings(
        host="10.0.0.7", user="ops; reboot", port=2222, identity="~/keys/my key", jump="mia@edge:2200, inner"
    )
    argv = ssh_command(make_machine("ada", ssh=ssh))
    pairs = dict(pairwise(argv))
    assert (pairs["-l"], pairs["-p"], pairs["-i"]) == ("ops; reboot", "2222", "~/keys/my key")
    assert pairs["-J"] == "mia@edge:2200,inner"
    assert argv[-2:] == ("--", "10.0.0.7")


def test_no_key_is_accepted_without_being_known_and_no_connection_of_others_is_used() -> None:
    for argv in (ssh_command(make_machine()), ssh_command(make_machine(), key_file="/tmp/x/known_hosts")):
        assert {"StrictHostKeyChecking=yes", "VerifyHostKeyDNS=no", "ControlPath=none"} <= set(options(argv))


def test_with_an_approved_key_nothing_else_counts() -> None:
    found = options(ssh_command(make_machine(), key_file="/tmp/100% x/known_hosts"))
    assert f"HostKeyAlias={KEY_ALIAS}" in found
    assert 'UserKnownHostsFile="/tmp/100%% x/known_hosts"' in found
    assert {"GlobalKnownHostsFile=/dev/null", "KnownHostsCommand=none", "UpdateHostKeys=no"} <= set(found)


def test_no_jump_is_said_as_such() -> None:
    argv = ssh_command(make_machine(ssh=SshSettings(jump="none")))
    assert "-J" not in argv
    assert "ProxyJump=none" in options(argv)


def test_brackets_of_an_ipv6_address_are_taken_off() -> None:
    assert ssh_command(make_machine(ssh=SshSettings(host="[2001:db8::1]")))[-1] == "2001:db8::1"


@pytest.mark.parametrize(
    "ssh",
    [
        SshSettings(host="-oProxyCommand=touch x"),
        SshSettings(user="-oProxyCommand=touch x"),
        SshSettings(jump="edge,-oProxyCommand=touch x"),
    ],
)
def test_a_word_that_would_be_an_option_is_refused(ssh: SshSettings) -> None:
    with pytest.raises(LinkError, match="begins with a dash"):
        ssh_command(make_machine(ssh=ssh))


def test_a_configuration_for_jump_hosts_is_strict_before_anything_else() -> None:
    lines = strict_config(["/home/a b/.ssh/config", "/etc/ssh/ssh_config"]).splitlines()
    assert lines[0] == "StrictHostKeyChecking yes"
    assert lines[-2:] == ['Include "/home/a b/.ssh/config"', 'Include "/etc/ssh/ssh_config"']


def test_a_key_is_written_as_known_hosts_has_it() -> None:
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)
    text = public_key_text(blob)
    assert text == "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43
    assert key_line(text) == f"{KEY_ALIAS} {text}\n"
    assert fingerprint_of(blob).startswith("SHA256:")
