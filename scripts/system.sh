#!/bin/sh
# System packages for one purpose: `sh scripts/system.sh python|test|screenshots`.
# Present: nothing happens, in a few milliseconds. Missing: apt-get as root, otherwise a message that says what
# to install and why. Never starts a service on this machine.
set -eu

say() { printf 'set-up: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }
can_apt() { [ "$(id -u)" = 0 ] && has apt-get; }

packages=
reasons=
# add PACKAGE REASON
add() {
    packages="$packages $1"
    reasons="$reasons  $1: $2
"
}
# want COMMAND PACKAGE REASON: add the package when the command is not there.
want() { has "$1" || add "$2" "$3"; }

# Debian starts what it installs. The tests start their own servers on loopback; this machine gets none.
policy=/usr/sbin/policy-rc.d
apt_install() {
    say "installing $* (apt-get)"
    is_ours=
    if [ ! -e "$policy" ] && [ -d "${policy%/*}" ]; then
        is_ours=yes
        trap 'rm -f "$policy"' EXIT
        trap 'exit 130' INT TERM HUP
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    had_sshd=$(has sshd && echo yes || echo no)
    had_prometheus=$(has prometheus && echo yes || echo no)
    log=$(mktemp)
    if ! { DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update &&
        DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
            install --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        say "apt-get could not install $*"
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    if [ "$had_sshd" = no ] && has sshd && has systemctl; then
        systemctl disable ssh.service ssh.socket >/dev/null 2>&1 || true
    fi
    if [ "$had_prometheus" = no ] && has prometheus && has systemctl; then
        systemctl disable prometheus.service >/dev/null 2>&1 || true
    fi
    if [ -n "$is_ours" ]; then rm -f "$policy"; fi
}

purpose=$1
shift
case $purpose in
python)
    # `python PACKAGE…`: asked for by setup.sh when `venv` lacks its parts.
    can_apt || exit 1
    apt_install "$@" || exit 1
    exit
    ;;
test)
    want sshd openssh-server "the tests talk to real OpenSSH servers, each on a loopback port of its own"
    want ssh-keygen openssh-client "keys for those servers"
    want curl curl "the last way to ask an engine, where the SSH server forbids forwarding"
    want wget wget "the same where there is no curl"
    required=$packages
    want busybox busybox "the remote loop is run by its shell too"
    want zsh zsh "a login shell that operators have"
    want fish fish "a login shell that operators have"
    want tcsh tcsh "a login shell that operators have"
    want bsd-csh csh "a login shell that operators have"
    want mksh mksh "a login shell that operators have"
    want tmux tmux "the dashboard is tried in a real terminal"
    want prometheus prometheus "a real Prometheus scrapes the server; its promtool checks the example alerts"
    ;;
screenshots)
    want rsvg-convert librsvg2-bin "turns the SVG screenshots into PNG"
    [ -n "$(find /usr/share/fonts "${HOME:-/nonexistent}/.local/share/fonts" -iname 'FiraCode*' 2>/dev/null | head -n 1)" ] ||
        add fonts-firacode "the font of the screenshots"
    required=$packages
    ;;
*)
    say "no such purpose: $purpose"
    exit 2
    ;;
esac

if [ -n "$packages" ]; then
    if can_apt; then
        # A package that only some tests need must not keep all others from running.
        # shellcheck disable=SC2086  # lists of package names
        if ! apt_install $packages; then
            if [ -n "$required" ] && { [ "$required" = "$packages" ] || ! apt_install $required; }; then
                say "install them yourself, then run make again:"
                printf '%s' "$reasons" >&2
                exit 1
            fi
            say "going on without: tests that need one of them are skipped and say so"
        fi
    else
        say "missing on this machine:"
        printf '%s' "$reasons" >&2
        say "install with: sudo apt-get install --no-install-recommends$packages"
        [ -z "$required" ] || exit 1
        say "going on without: tests that need one of them are skipped and say so"
    fi
fi

# sshd started by root insists on this folder; /run is empty after every boot.
if [ "$purpose" = test ] && [ "$(id -u)" = 0 ] && [ ! -d /run/sshd ]; then
    mkdir -m 755 /run/sshd
fi
