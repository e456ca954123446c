#!/bin/sh
# Python environment for one purpose: `sh scripts/setup.sh runtime|test|check`.
# Makes .venv with the exact versions of requirements/PURPOSE.txt and fleettui itself, editable. Does nothing, in
# a few milliseconds, when neither the pins nor the project nor the folder changed.
# PYTHON=… chooses the interpreter; else the first of python3, python3.13, python3.12, python3.11 that is 3.11+.
set -eu
cd "$(dirname "$0")/.."

purpose=$1
venv=.venv
stamp=$venv/.ready-$purpose
say() { printf 'set-up: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# is_usable COMMAND: an interpreter that runs and is new enough (a pyenv shim may exist and not run).
is_usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_usable "$PYTHON" || die "PYTHON=$PYTHON does not run or is older than Python 3.11"
        printf '%s\n' "$PYTHON"
        return
    fi
    for name in python3 python3.13 python3.12 python3.11; do
        if is_usable "$name"; then
            printf '%s\n' "$name"
            return
        fi
    done
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && ! command -v python3 >/dev/null 2>&1; then
        sh scripts/system.sh python python3 python3-venv
        if is_usable python3; then
            echo python3
            return
        fi
    fi
    die "no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3 …"
}

# Contents, not times: a fresh checkout, a moved folder and a changed pin are told apart rightly.
fingerprint() {
    cat requirements/*.txt pyproject.toml scripts/setup.sh | cksum
    pwd -P
}

# Without PYTHON any sound environment will do; with it, only one made by that interpreter.
is_asked_python() {
    [ -z "${PYTHON:-}" ] || [ "$("$venv/bin/python" -c "$whoami")" = "$("$PYTHON" -c "$whoami")" ]
}
whoami='import sys; print(sys.base_prefix, sys.version)'

is_ready() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ] && [ -x "$venv/bin/python" ] &&
        [ -x "$venv/bin/fleettui" ] && is_asked_python
}

# Debian ships venv without its parts: its own package, else a pip of the system fills the new environment.
create_venv() {
    python=$1
    if "$python" -m venv --clear "$venv" >"$venv.log" 2>&1; then
        rm -f "$venv.log"
        return
    fi
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        sh scripts/system.sh python "python$version-venv" || sh scripts/system.sh python python3-venv || true
        if "$python" -m venv --clear "$venv" >"$venv.log" 2>&1; then
            rm -f "$venv.log"
            return
        fi
    fi
    if "$python" -m venv --clear --without-pip "$venv" >"$venv.log" 2>&1 &&
        "$python" -m pip --python "$venv" install -q pip >>"$venv.log" 2>&1; then
        rm -f "$venv.log"
        return
    fi
    tail -n 5 "$venv.log" >&2
    rm -rf "$venv" "$venv.log"
    die "$python cannot make a virtual environment; install its venv package (Debian, Ubuntu: \
sudo apt-get install python$version-venv) and run make again"
}

pip_install() {
    "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check "$@" </dev/null
}

# A half-made environment, one of another folder, or one of another Python is made anew.
is_sound() {
    [ -x "$venv/bin/python" ] || return 1
    home=$("$venv/bin/python" -c 'import pip, sys; print(sys.prefix)' 2>/dev/null) || return 1
    [ "$home" = "$(pwd -P)/$venv" ] && is_usable "$venv/bin/python" && is_asked_python
}

make_ready() {
    if ! is_sound; then
        python=$(find_python)
        say "virtual environment in $venv ($("$python" -V 2>&1))"
        create_venv "$python"
    fi
    # A change of the pins takes back what a larger purpose had: its stamps go, its packages stay.
    say "installing the pinned packages for $purpose"
    rm -f "$venv"/.ready-*
    pins=requirements/$purpose.txt
    [ "$purpose" != runtime ] || pins=requirements/serve.txt # a checkout has the optional part of fleettui, too
    pip_install --requirement "$pins" --requirement requirements/build.txt ||
        die "pip could not install $pins (message above); is the package index reachable?"
    # Engines have no wheel for every system, and no test needs one of them to be there. Never built: that takes
    # a compiler and an hour.
    [ "$purpose" = runtime ] || pip_install --only-binary :all: --requirement requirements/engines.txt ||
        say "no real engine here (message above); the tests that run one are skipped"
    [ "$purpose" = runtime ] || pip_install --only-binary :all: --requirement requirements/solver.txt ||
        say "no exact solver here (message above); the tests that compare with it are skipped"
    pip_install --no-build-isolation --no-deps --editable . ||
        die "fleettui itself could not be installed (message above)"
    # An editable install is compiled by nobody: where PYTHONDONTWRITEBYTECODE is set, each call would do it anew.
    "$venv/bin/python" -m compileall -q src || say "some modules could not be compiled beforehand; starts are slower"
    # Each purpose contains the ones before it.
    for name in runtime test check; do
        fingerprint >"$venv/.ready-$name"
        [ "$name" != "$purpose" ] || break
    done
}

if is_ready; then exit 0; fi
# Two makes at once: the second waits, then finds everything done.
if [ -z "${FLEETTUI_SETUP_LOCKED:-}" ] && command -v flock >/dev/null 2>&1; then
    FLEETTUI_SETUP_LOCKED=1 exec flock scripts/setup.sh sh scripts/setup.sh "$purpose"
fi
is_ready || make_ready
