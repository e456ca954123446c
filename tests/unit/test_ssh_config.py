"""ssh_config read leniently: one odd line is a notice, never an outage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.machine import Machine, SshSettings
from fleettui.net.errors import LinkError
from fleettui.net.hops import parse_jump, plan_hops
from fleettui.net.key_rules import KeyRule, apply_rule
from fleettui.net.ssh_config import SshConfig
from fleettui.net.ssh_config_words import split_line

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ssh"


def read(text: str, tmp_path: Path) -> SshConfig:
    path = tmp_path / "config"
    path.write_text(text)
    config = SshConfig(str(tmp_path))
    config.add_file(str(path))
    return config


def machine(**ssh: object) -> Machine:
    return Machine("ada", "gpu-host", "gpu-a", ssh=SshSettings(**ssh))  # type: ignore[arg-type]


@pytest.mark.parametrize("sample", sorted(path.name for path in FIXTURES.glob("1[37]-*.txt")))
def test_what_openssh_accepts_breaks_no_machine(sample: str, tmp_path: Path) -> None:
    config = read((FIXTURES / sample).read_text(), tmp_path)
    found = config.settings_for("gpu-a")
    assert found.host_name == "192.0.2.10"
    assert found.port == (2222 if "trailing-comment" in sample else None)
    assert config.problems == []


def test_an_include_obeys_the_block_around_it(tmp_path: Path) -> None:
    (tmp_path / "config.d").mkdir()
    (tmp_path / "config.d" / "gpu-b.conf").write_text(
        (FIXTURES / "15-config-include-match-included.txt").read_text()
    )
    config = read((FIXTURES / "15-config-include-match-main.txt").read_text(), tmp_path)
    a, b = config.settings_for("gpu-a"), config.settings_for("gpu-b")
    assert (a.host_name, a.user, a.port) == ("gpu-a", "ops", None)
    assert (b.host_name, b.user, b.port) == ("192.0.2.11", "ops", 2222)
    assert str(tmp_path / "config.d" / "gpu-b.conf") in config.files


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    config = read(f"Include {tmp_path}/config\nPort 2200\n", tmp_path)
    assert config.settings_for("x").port == 2200
    assert "nested too deeply" in config.problems[0].message


def test_odd_lines_are_named_with_file_and_line(tmp_path: Path) -> None:
    text = (
        'Host gpu-a\n  Port lots\n  User "ops\n  HostName\nMatch exec "true"\n  Port 1\nHost *\n  Port 2200\n'
    )
    config = read(text, tmp_path)
    found = config.settings_for("gpu-a")
    assert (found.user, found.port, found.host_name) == (None, None, "gpu-a")
    assert sorted(problem.line or 0 for problem in config.problems) == [2, 3, 4, 5]
    assert {problem.file for problem in config.problems} == {str(tmp_path / "config")}


def test_the_first_value_wins_and_identities_add_up(tmp_path: Path) -> None:
    text = "Host gpu-a\n IdentityFile ~/one\n Port 1\nHost *\n Port 2\n IdentityFile %d/two-%r\n User ops\n"
    found = read(text, tmp_path).settings_for("gpu-a")
    assert found.port == 1
    assert found.identity_files == (f"{tmp_path}/one", f"{tmp_path}/two-ops")


def test_a_token_we_do_not_know_costs_its_own_value_only(tmp_path: Path) -> None:
    config = read("Host *\n IdentityFile ~/%Z\n HostName %h.lan\n", tmp_path)
    found = config.settings_for("gpu-a")
    assert found.host_name == "gpu-a.lan"
    assert found.identity_files == ()
    assert "%Z" in config.problems[0].message


def notices(text: str, tmp_path: Path) -> list[tuple[int | None, str]]:
    """(line, notice) of a file, after it was asked for one host."""
    config = read(text, tmp_path)
    config.settings_for("gpu-a")
    config.settings_for("gpu-a")
    return [(problem.line, problem.message) for problem in config.problems]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("Match exec true\n Port 9\n", 1, "Match exec is not carried out here"),
        ("Match host gpu-a localnetwork 10.0.0.0/8\n Port 9\n", 1, "Match localnetwork is not looked at"),
        ("Match version 9\n Port 9\n", 1, "Match version means ssh"),
        ("Match colour blue\n Port 9\n", 1, "Match colour is not known here"),
        ("\nMatch\n Port 9\n", 2, "Match without a condition"),
        ("Host\n Port 9\n", 1, "Host without a condition"),
        ("HostName %n.lan\n", 1, "HostName: %n is not known here"),
        ("CanonicalizeHostname always\n", 1, "CanonicalizeHostname is not done here: names are taken"),
        ("BindInterface eth0\n", 1, "use BindAddress"),
        ("Host x\n KnownHostsCommand /bin/x %H\n", 2, "KnownHostsCommand is not done here"),
        ("RevokedHostKeys /etc/krl\n", 1, "use @revoked lines"),
        ("IdentiyFile ~/x\n", 1, "IdentiyFile is not known here"),
        ("AddressFamily ipv6\n", 1, "AddressFamily 'ipv6' is none"),
        ("IdentityFile /a /b\n", 1, "IdentityFile takes one value"),
        ("CertificateFile ~/${NO_SUCH_VARIABLE_HERE}\n", 1, "environment variable NO_SUCH_VARIABLE_HERE"),
        ("Include\n", 1, "Include without a file"),
    ],
)
def test_what_is_not_done_is_told_once_with_its_line(
    text: str, line: int, words: str, tmp_path: Path
) -> None:
    found = notices(text, tmp_path)
    assert len(found) == 1
    assert found[0][0] == line
    assert words in found[0][1]


@pytest.mark.parametrize(
    "text", ["CanonicalizeHostname no\n", "ProxyUseFdpass no\n", "IgnoreUnknown X*\nXyz 1\n"]
)
def test_what_changes_nothing_is_not_told(text: str, tmp_path: Path) -> None:
    assert notices(text, tmp_path) == []


@pytest.mark.parametrize(
    "condition", ["exec true", "localnetwork 0.0.0.0/0", "colour blue", "host x exec true"]
)
def test_a_condition_that_cannot_be_known_costs_its_block_only(condition: str, tmp_path: Path) -> None:
    text = f"Match {condition}\n User wrong\n Port 1\nHost gpu-a\n User right\n"
    found = read(text, tmp_path).settings_for("gpu-a")
    assert (found.user, found.port) == ("right", None)


def test_a_tag_is_matched(tmp_path: Path) -> None:
    config = read("Host gpu-a\n Tag lab\nMatch tagged lab\n Port 9\n", tmp_path)
    assert config.settings_for("gpu-a").port == 9
    assert config.settings_for("gpu-b").port is None


def test_a_match_that_never_runs_a_command(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    read(f'Match exec "touch {witness}"\n Port 9\n', tmp_path).settings_for("gpu-a")
    assert not witness.exists()


def test_an_agent_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_AGENT", "/run/lab")
    assert read("IdentityAgent $LAB_AGENT\n", tmp_path).settings_for("x").identity_agent == "/run/lab"
    assert read("IdentityAgent $NO_SUCH_THING\n", tmp_path).settings_for("x").identity_agent == "none"


def test_a_shells_own_variables_stay_in_a_proxy_command(tmp_path: Path) -> None:
    found = read("ProxyCommand nc ${NO_SUCH_THING:-x} %h %p %%\n", tmp_path).settings_for("gpu-a")
    assert found.proxy_command == "nc ${NO_SUCH_THING:-x} gpu-a 22 %"


def test_no_key_is_not_the_usual_keys(tmp_path: Path) -> None:
    assert read("IdentityFile none\n", tmp_path).settings_for("x").identity_files == ()
    assert read("Port 9\n", tmp_path).settings_for("x").identity_files is None


def test_includes_that_multiply_end(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for number in range(8):
        (tmp_path / "d" / str(number)).write_text(f"Include {tmp_path}/d/*\nPort {2000 + number}\n")
    config = read(f"Include {tmp_path}/d/*\n", tmp_path)
    assert len(config.files) <= 600
    assert config.settings_for("x").port is not None


def test_a_file_of_another_size_or_kind_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    config = SshConfig(str(tmp_path))
    config.add_file(str(tmp_path / "config"))
    (tmp_path / "big").write_bytes(b"# x\n" * (2 << 20))
    config.add_file(str(tmp_path / "big"))
    assert ["cannot be read" in problem.message for problem in config.problems] == [True, False]
    assert "larger than 4 MiB" in config.problems[1].message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Port 22", ["Port", "22"]),
        ("Port=22", ["Port", "22"]),
        ("Port = 22 # lab", ["Port", "22"]),
        ('IdentityFile "/a b/c"', ["IdentityFile", "/a b/c"]),
        ("Host a b #c", ["Host", "a", "b"]),
        ("SetEnv A=b=c", ["SetEnv", "A=b=c"]),
        ("HostName a#b", ["HostName", "a#b"]),
        ("  # nothing", []),
    ],
)
def test_lines_split_as_openssh_splits_them(line: str, words: list[str]) -> None:
    assert split_line(line) == words


SNIPPETS = st.sampled_from(
    [
        "Host ",
        "Match ",
        "Include ",
        "gpu-a",
        "*",
        "!",
        "%h",
        "${",
        "}",
        '"',
        "\\",
        "=",
        "\n",
        "#",
        "final",
        "Port 22",
    ]
)


@given(st.binary(max_size=200) | st.lists(SNIPPETS | st.text(max_size=5), max_size=40).map("".join))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, text: bytes | str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    config = SshConfig("/nonexistent")
    config.add_file(str(path))
    found = config.settings_for("gpu-a")
    assert found.port is None or 0 < found.port < 65536
    assert len(config.problems) <= 100


@given(st.text(max_size=300))
def test_any_text_is_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("config")
    path = folder / "config"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    config = SshConfig(str(folder))
    config.add_file(str(path))
    config.settings_for("gpu-a")


def test_the_machine_file_wins_over_the_configuration(tmp_path: Path) -> None:
    config = read("Host gpu-a\n HostName 192.0.2.9\n User ops\n Port 2200\n IdentityFile ~/x\n", tmp_path)
    rule = KeyRule(("SHA256:z",))
    own = machine(user="root", port=22, identity="~/y", host_key="SHA256:pin")
    (hop,) = apply_rule(plan_hops(own, config), rule, None)
    assert (hop.host, hop.user, hop.port) == ("192.0.2.9", "root", 22)
    assert hop.identity_files == (f"{tmp_path}/y",)
    assert hop.pins == ("SHA256:pin",)
    (plain,) = apply_rule(plan_hops(machine(), config), rule, None)
    assert (plain.user, plain.port, plain.pins) == ("ops", 2200, ("SHA256:z",))


def test_a_chain_of_jump_hosts_comes_first(tmp_path: Path) -> None:
    config = read(
        "Host edge\n HostName edge.example\n Port 2222\n ProxyJump outer\nHost outer\n User bob\n", tmp_path
    )
    hops = plan_hops(machine(jump="edge,ann@[2001:db8::1]:99"), config)
    assert [(hop.host, hop.port) for hop in hops] == [
        ("outer", 22),
        ("edge.example", 2222),
        ("2001:db8::1", 99),
        ("gpu-a", 22),
    ]
    assert (hops[0].user, hops[2].user) == ("bob", "ann")


def test_jump_none_overrides_the_configuration(tmp_path: Path) -> None:
    config = read("Host *\n ProxyJump edge\nHost edge\n ProxyJump none\n", tmp_path)
    assert len(plan_hops(machine(jump="none"), config)) == 1


def test_jump_hosts_in_a_circle_are_an_error_not_a_loop(tmp_path: Path) -> None:
    config = read("Host a\n ProxyJump b\nHost b\n ProxyJump a\nHost gpu-a\n ProxyJump a\n", tmp_path)
    with pytest.raises(LinkError) as caught:
        plan_hops(machine(), config)
    assert (caught.value.stage, caught.value.is_retryable) == ("settings", False)


@pytest.mark.parametrize("word", ["", "user@", "host:port", "host:0", "host:70000", "[::1:22"])
def test_a_jump_host_that_is_none_is_named(word: str) -> None:
    with pytest.raises(LinkError, match="is not"):
        parse_jump(word, "ada")
