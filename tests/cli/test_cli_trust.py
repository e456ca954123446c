"""`fleettui machines add|approve|reject|remove|list --pending`: output, exit codes, JSON."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Cli, write_machine

KEY = "SHA256:" + "a" * 43
OTHER = "SHA256:" + "b" * 43


@pytest.fixture
def trust_cli(machines_dir: Path, tmp_path: Path) -> Cli:
    """The command on an empty folder with a state folder of its own."""
    return Cli({"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")})


def document(cli: Cli, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = cli(*arguments, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def errors(found: dict[str, Any]) -> list[str]:
    return [error["message"] for error in found["errors"]]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# -- add --------------------------------------------------------------------------------------------


def test_add_writes_a_small_file_that_is_read_back(trust_cli: Cli, machines_dir: Path) -> None:
    done = trust_cli(
        "machines", "add", "ops@ada.lan:2222", "--role", "cpu-host", "--tag", "a", "--tag", "b c"
    )
    path = machines_dir / "ada.yaml"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"ada is added: {path}; pending until its host key is approved: fleettui machines approve ada\n"
    )
    assert path.read_text() == (
        "name: ada\nrole: cpu-host\nhardware: {}\nnetwork:\n  hostname: ada.lan\nmodels: []\n"
        'tags: [a, "b c"]\nssh:\n  user: ops\n  port: 2222\n'
    )
    assert trust_cli("machines", "check").returncode == 0


def test_adding_a_known_machine_again_changes_nothing(trust_cli: Cli, machines_dir: Path) -> None:
    trust_cli("machines", "add", "ops@ada.lan:2222")
    path = machines_dir / "ada.yaml"
    path.write_text(path.read_text() + "note: mine\n")
    for words in (("ops@ada.lan:2222",), ("ada.lan:2222", "--name", "ada", "--tag", "new")):
        code, found = document(trust_cli, "machines", "add", *words)
        assert (code, found["machines"][0]["outcome"], found["errors"]) == (0, "already_known", [])
    assert path.read_text().endswith("note: mine\n")
    assert [item.name for item in machines_dir.iterdir()] == ["ada.yaml"]


def test_add_makes_the_folder(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "machines"
    words = ("machines", "add", "ada.lan", "--machines", str(folder), "--state-dir", str(tmp_path / "s"))
    assert cli(*words).returncode == 0
    assert (folder / "ada.yaml").exists()


def test_a_name_that_only_ssh_config_knows_is_handed_out_as_its_address(
    trust_cli: Cli, machines_dir: Path, home: Path
) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").write_text("Host box\n  HostName 192.0.2.7\n  Port 2200\n")
    code, found = document(trust_cli, "machines", "add", "box")
    assert (code, found["machines"][0]["address"]) == (0, "192.0.2.7:2200")
    assert 'hostname: "192.0.2.7"' in (machines_dir / "box.yaml").read_text()
    assert "  host: box\n" in (machines_dir / "box.yaml").read_text()


@pytest.mark.parametrize(
    ("target", "name", "host", "port"),
    [
        ("[2001:db8::7]:2222", "2001:db8::7", "2001:db8::7", 2222),
        ("2001:db8::7", "2001:db8::7", "2001:db8::7", None),
        ("192.0.2.9", "192.0.2.9", "192.0.2.9", None),
    ],
)
def test_addresses_are_their_own_name(
    trust_cli: Cli, target: str, name: str, host: str, port: int | None
) -> None:
    assert trust_cli("machines", "add", target).returncode == 0
    machine = json.loads(trust_cli("machines", "list", "--json").stdout)["machines"][0]
    assert (machine["name"], machine["network"]["hostname"]) == (name, host)
    assert machine.get("ssh", {}).get("port") == port


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("a:99999",), "'a:99999' is not [USER@]HOST[:PORT]"),
        (("http://a",), "'http://a' is not [USER@]HOST[:PORT]"),
        (("@a",), "'@a' is not [USER@]HOST[:PORT]"),
        (("a b",), "holds a character that no host name has"),
        (("a", "--fingerprint", "SHA256:short"), "must be SHA256: and 43 characters"),
        (("a", "--role", "x\ny"), "control character"),
        (("-f", "/nowhere/list"), "/nowhere/list: the list cannot be read (No such file or directory)"),
        ((), "which machine?"),
        (("a", "-f", "list"), "stands in the list"),
    ],
)
def test_what_cannot_be_added_is_told_and_nothing_is_written(
    trust_cli: Cli, machines_dir: Path, words: tuple[str, ...], told: str
) -> None:
    done = trust_cli("machines", "add", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert list(machines_dir.iterdir()) == []


def test_a_file_that_is_there_is_never_replaced(trust_cli: Cli, machines_dir: Path, tmp_path: Path) -> None:
    write_machine(machines_dir, "ada", network="{hostname: one.lan}")
    taken = machines_dir / "two.yaml"
    taken.write_text("not: a machine\n")
    other = trust_cli("machines", "add", "ada.lan")
    assert other.returncode == 2
    assert f"ada is declared in {machines_dir / 'ada.yaml'} for another address" in other.stderr
    twice = trust_cli("machines", "add", "one.lan", "--name", "second")
    assert twice.returncode == 2
    assert "one.lan:22 is declared already, as ada" in twice.stderr
    lines = tmp_path / "list"
    lines.write_text("three.lan\ntwo.lan\n")
    bulk = trust_cli("machines", "add", "-f", str(lines))
    assert bulk.returncode == 1
    assert f"{taken}: there is such a file already" in bulk.stderr
    assert taken.read_text() == "not: a machine\n"
    assert sorted(item.name for item in machines_dir.iterdir()) == ["ada.yaml", "two.yaml"], "all or nothing"


def test_a_list_is_added_at_once_with_its_keys(trust_cli: Cli, machines_dir: Path, tmp_path: Path) -> None:
    lines = tmp_path / "list"
    lines.write_text(
        f"# our machines\nops@ada.lan:2222 --fingerprint {KEY}\n\nbora.lan --name 'b 1' --tag x # edge\n"
    )
    code, found = document(trust_cli, "machines", "add", "-f", str(lines))
    assert code == 0
    assert [(item["name"], item["outcome"], item["fingerprint"]) for item in found["machines"]] == [
        ("ada", "added", KEY),
        ("b 1", "added", None),
    ]
    listed = trust_cli("machines", "list").stdout.splitlines()
    assert listed[0] == "MACHINE  ROLE      ADDRESS         TRUST     GPUS  MODELS  TAGS"
    assert listed[1:] == [
        "ada      gpu-host  ada.lan:11434   approved  –     0",
        "b 1      gpu-host  bora.lan:11434  pending   –     0       x",
    ]
    assert stat.S_IMODE((tmp_path / "state" / "state.db").stat().st_mode) == 0o600
    assert (
        document(trust_cli, "machines", "add", "-f", str(lines))[1]["machines"][0]["outcome"]
        == "already_known"
    )
    assert len(list(machines_dir.iterdir())) == 2


def test_every_wrong_line_of_a_list_is_named_and_nothing_is_written(
    trust_cli: Cli, machines_dir: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "list"
    lines.write_text("a.lan\nb.lan --fingerprint x\n'open\nc.lan --colour red\na.lan\nd:0\n\n--name x\n")
    done = trust_cli("machines", "add", "-f", str(lines))
    assert (done.returncode, done.stdout) == (2, "")
    told = done.stderr.splitlines()
    assert told[0].startswith(f"fleettui machines: {lines}: nothing was added: line 2: ")
    assert [line.split(":")[0].strip() for line in told[1:]] == [
        "line 3",
        "line 4",
        "line 5",
        "line 6",
        "line 8",
    ]
    assert list(machines_dir.iterdir()) == []
    code, found = document(trust_cli, "machines", "add", "-f", str(lines))
    assert (code, found["machines"]) == (2, [])


def test_a_list_without_machines_is_a_mistake(trust_cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "list"
    lines.write_text("# nobody\n")
    done = trust_cli("machines", "add", "-f", str(lines))
    assert done.returncode == 2
    assert "no machine in this list" in done.stderr


def test_another_key_for_an_approved_machine_takes_approve(trust_cli: Cli) -> None:
    trust_cli("machines", "add", "ada.lan", "--fingerprint", KEY)
    done = trust_cli("machines", "add", "ada.lan", "--fingerprint", OTHER)
    assert done.returncode == 2
    assert f"approved with another key, {KEY}" in done.stderr
    assert f"fleettui machines approve ada --fingerprint {OTHER}" in done.stderr
    again = document(trust_cli, "machines", "approve", "ada", "--fingerprint", KEY)
    assert (again[0], again[1]["machines"][0]["outcome"]) == (0, "already_approved")


# -- approve, reject, remove ------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["approve", "reject", "remove"])
def test_an_unknown_name_is_exit_3_and_names_the_nearest(
    trust_cli: Cli, machines_dir: Path, verb: str
) -> None:
    write_machine(machines_dir, "ada")
    done = trust_cli("machines", verb, "adda", "--yes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no machine is named 'adda'" in done.stderr
    code, found = document(trust_cli, "machines", verb, "adda", "--yes")
    assert (code, found["exit_code"], found["machines"]) == (3, 3, [])


def test_one_unknown_name_among_several_decides_nothing(trust_cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada")
    assert trust_cli("machines", "reject", "ada", "nobody").returncode == 3
    assert "rejected" not in trust_cli("machines", "list").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ada", "--fingerprint", "SHA256:" + "a" * 42), "is no whole fingerprint"),
        (("ada", "--fingerprint", "MD5:" + "a" * 43), "is no whole fingerprint"),
        (("ada", "bora", "--fingerprint", KEY), "belongs to one machine"),
    ],
)
def test_a_wrong_fingerprint_is_a_usage_error(trust_cli: Cli, words: tuple[str, ...], told: str) -> None:
    done = trust_cli("machines", "approve", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_yes_approves_no_key_that_nobody_saw(trust_cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", ssh=f"{{port: {closed_port()}}}")
    code, found = document(trust_cli, "machines", "approve", "ada", "--yes")
    assert code == 1
    assert found["errors"][0]["reason"] == "not_shown"
    assert "no key of it waits for approval" in errors(found)[0]


def test_no_answer_is_exit_4_with_the_reason(trust_cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", ssh=f"{{port: {closed_port()}}}")
    for words in (("--fingerprint", KEY), ()):
        code, found = document(trust_cli, "machines", "approve", "ada", *words)
        assert (code, found["errors"][0]["reason"]) == (4, "no_contact")
        assert "connection refused" in errors(found)[0]


def test_this_computer_needs_no_approval_and_has_no_key_to_reject(trust_cli: Cli, machines_dir: Path) -> None:
    path = write_machine(machines_dir, "here", ssh="local")
    for words in (("--yes",), ()):
        code, found = document(trust_cli, "machines", "approve", "here", *words)
        assert (code, found["machines"][0]["outcome"]) == (0, "needs_no_approval")
    rejected = trust_cli("machines", "reject", "here", "--yes")
    assert rejected.returncode == 1
    assert f"`ssh: local` in {path} counts first" in rejected.stderr


def test_a_key_named_in_the_file_counts_first(trust_cli: Cli, machines_dir: Path) -> None:
    path = write_machine(machines_dir, "ada", ssh=f"{{host_key: '{KEY}'}}")
    done = trust_cli("machines", "approve", "ada", "--fingerprint", OTHER)
    assert done.returncode == 1
    assert f"{path} names {KEY} (ssh.host_key)" in done.stderr
    assert trust_cli("machines", "reject", "ada", "--yes").returncode == 1
    removed = trust_cli("machines", "remove", "ada", "--yes")
    assert removed.returncode == 0
    assert f"{path} is still there and says `ssh.host_key`, so it is still asked" in removed.stdout


def test_reject_asks_only_about_approved_machines_and_can_be_taken_back(trust_cli: Cli) -> None:
    trust_cli("machines", "add", "ada.lan", "--fingerprint", KEY)
    unasked = trust_cli("machines", "reject", "ada")
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "add --yes" in unasked.stderr
    assert trust_cli("machines", "reject", "ada", "--yes").stdout == (
        f"ada with {KEY} is rejected: nothing is asked of ada.lan:22, whatever known_hosts says\n"
    )
    code, again = document(trust_cli, "machines", "reject", "ada")
    assert (code, again["machines"][0]["outcome"]) == (0, "already_rejected")
    assert " rejected " in trust_cli("machines", "list").stdout
    added_again = trust_cli("machines", "add", "ada.lan")
    assert added_again.returncode == 0
    assert "it was rejected by" in added_again.stdout, "adding is no approval of a rejected key"
    assert trust_cli("machines", "add", "ada.lan", "--fingerprint", KEY).returncode == 0
    assert " approved " in trust_cli("machines", "list").stdout


def test_remove_without_a_terminal_takes_yes(trust_cli: Cli, machines_dir: Path) -> None:
    trust_cli("machines", "add", "ada.lan", "--fingerprint", KEY)
    unasked = trust_cli("machines", "remove", "ada")
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "add --yes" in unasked.stderr
    done = trust_cli("machines", "remove", "ada", "--yes")
    path = machines_dir / "ada.yaml"
    assert done.returncode == 0
    assert done.stdout == (
        "ada is removed: its approval is forgotten, what known_hosts says of it counts no more; "
        f"{path} is still there, so it is pending until you delete or approve it\n"
    )
    assert "role    gpu-host" in done.stderr
    assert " pending " in trust_cli("machines", "list").stdout
    gone = trust_cli("machines", "remove", "ada", "--yes", "--delete-file")
    assert (gone.returncode, path.exists()) == (0, False)
    assert trust_cli("machines", "remove", "ada", "--yes").returncode == 0, (
        "what is remembered can be removed"
    )
    assert trust_cli("machines", "add", "ada.lan").stdout.endswith("fleettui machines approve ada\n")


def test_known_hosts_counts_until_the_machine_is_removed(trust_cli: Cli, home: Path) -> None:
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "known_hosts").write_text(f"ada.lan {key.with_suffix('.pub').read_text()}")
    added = trust_cli("machines", "add", "ada.lan")
    assert added.stdout.endswith("its host key stands in known_hosts\n")
    assert " approved " in trust_cli("machines", "list").stdout
    assert document(trust_cli, "machines", "approve", "ada", "--yes")[1]["machines"][0]["outcome"] == (
        "needs_no_approval"
    )
    assert trust_cli("machines", "remove", "ada", "--yes").returncode == 0
    assert " pending " in trust_cli("machines", "list").stdout


# -- list --pending, state, --readonly --------------------------------------------------------------


def test_list_json_keeps_its_shape(trust_cli: Cli) -> None:
    trust_cli("machines", "add", "ada.lan")
    found = json.loads(trust_cli("machines", "list", "--json").stdout)
    assert sorted(found) == ["errors", "machines", "schema", "total"]
    assert sorted(found["machines"][0]) == ["_config_file", "hardware", "models", "name", "network", "role"]


def test_pending_lists_only_who_waits(trust_cli: Cli) -> None:
    assert trust_cli("machines", "list", "--pending").stdout == "no machine waits for approval\n"
    trust_cli("machines", "add", "ada.lan")
    trust_cli("machines", "add", "bora.lan", "--fingerprint", KEY)
    done = trust_cli("machines", "list", "--pending")
    assert done.stdout == (
        "ada  ada.lan:22  pending\n  its key was not read yet; to read it: fleettui machines approve ada\n\n"
    )
    _, found = document(trust_cli, "machines", "list", "--pending")
    assert (found["total"], found["machines"][0]["_trust"]) == (
        1,
        {"state": "pending", "address": "ada.lan:22", "offered": None},
    )


@pytest.mark.parametrize(
    "words",
    [
        ("add", "bora.lan"),
        ("approve", "ada", "--yes"),
        ("reject", "ada", "--yes"),
        ("remove", "ada", "--yes"),
    ],
)
def test_readonly_refuses_what_changes_anything(
    trust_cli: Cli, machines_dir: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    write_machine(machines_dir, "ada")
    for environment in ({}, {"FLEETTUI_READONLY": "true"}):
        option = () if environment else ("--readonly",)
        done = trust_cli(*option, "machines", *words, **environment)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"refuses machines {words[0]}" in done.stderr
    assert [item.name for item in machines_dir.iterdir()] == ["ada.yaml"]
    assert not (tmp_path / "state").exists()


def test_a_state_folder_that_cannot_be_written_is_a_clear_error(machines_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_machine(machines_dir, "ada")
    cli = Cli(
        {"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "file" / "state")}
    )
    for words in (("add", "bora.lan"), ("reject", "ada"), ("remove", "ada", "--yes")):
        done = cli("machines", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "the state file cannot be" in done.stderr
        assert "--state-dir" in done.stderr or "owner and rights" in done.stderr
    assert [item.name for item in machines_dir.iterdir()] == ["ada.yaml"]


def test_decisions_that_cannot_be_read_are_told_and_hide_no_machine(
    trust_cli: Cli, machines_dir: Path, tmp_path: Path
) -> None:
    write_machine(machines_dir, "ada")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "state.db").write_bytes(b"something else entirely, not a database" * 40)
    listed = trust_cli("machines", "list")
    assert listed.returncode == 0
    assert "ada      gpu-host  127.0.0.1:11434  –" in listed.stdout
    assert "damaged; move it away" in listed.stderr
    assert trust_cli("machines", "list", "--pending").returncode == 2
