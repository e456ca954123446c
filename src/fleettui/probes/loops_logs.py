"""The loop of `fleettui logs`: the machine's journal, or what stands in its place.

Sections: `log:<seconds>[:<unit>]` journalctl's lines of the last seconds, and `rc <exit code>` as the last
line; `follow:<seconds>[:<unit>]` the same outside any frame, after a line with the frame's mark alone, and on
with what comes until the channel ends; `dmesg` /proc/uptime, then the kernel's ring buffer; `logfiles` the
ends of log files, each behind `== <path>`, or `=x <path>` where it may not be read.

Without a unit: the kernel, and the units and containers whose names begin like an engine's or with `nvidia-`;
journalctl itself joins by `+` only whole names, so they are looked up first. The unit `kernel` is the kernel.
"""

from __future__ import annotations

from typing import Final

JOURNAL_LIMIT_S: Final = 10
LOG_BYTES_KEPT: Final = 1_000_000
"""Of the journal in one answer: the newest. A frame holds 4 MiB."""
DMESG_LINES_KEPT: Final = 1000
FILE_LINES_KEPT: Final = 300
LOG_FILES: Final = (
    "/var/log/ollama*.log", "/var/log/ollama/*.log", "/var/log/vllm*.log", "/var/log/llama*.log",
    "/var/log/nvidia*.log", "/var/log/messages",
)  # fmt: skip
"""Where systems without a journal keep them: OpenRC's scripts name a file, busybox's syslogd has messages."""

# look KIND SECONDS UNIT. UNIT= of process 1 are systemd's own words on a unit: started,
# failed, killed for memory.
# -q with -F alone: elsewhere the hint on what may not be read is wanted.
_START = rf"""
look() {{
  a=$1; b=$2; c=$3;
  case $c in
    kernel) set -- _TRANSPORT=kernel;;
    ?*) set -- -u "$c";;
    *)
      set -- _TRANSPORT=kernel;
      for f in _SYSTEMD_UNIT CONTAINER_NAME; do
        for u in $(exec ${{T:+$T 5}} journalctl -q --no-pager -F $f </dev/null); do
          case $u in
            ollama*|vllm*|llama*|sglang*|lmstudio*|lms*|nvidia-*)
              set -- "$@" + "$f=$u";
              case $f in
                _S*) set -- "$@" + _PID=1 "UNIT=$u";;
              esac;;
          esac;
        done;
      done;;
  esac;
  case $a in
    follow) journalctl -f --no-tail --no-pager -o short-iso --since "-${{b}}s" "$@" 2>&1 </dev/null;;
    *)
      ${{T:+$T {JOURNAL_LIMIT_S}}} journalctl --no-pager -o short-iso --since "-${{b}}s"
        "$@" 2>&1 </dev/null;;
  esac;
}};
"""

_CASES = rf"""
  log:*|follow:*)
    p=${{w%%:*}}; k=${{w#*:}}; u=; r=64; v=;
    case $k in
      *:*) u=${{k#*:}}; k=${{k%%:*}};;
    esac;
    case $k in
      ""|*[a-zA-Z_:/.@-]*) ;;
      *)
        case $p in
          follow) say "$I$n"; look follow $k "$u"; r=$?;;
          *) v=$({{ look log $k "$u"; echo "rc $?"; }} | tail -c {LOG_BYTES_KEPT}); r=0;;
        esac;;
    esac;
    add $p $r "$v";;
  dmesg)
    k=; read -r k z </proc/uptime;
    v=$(exec ${{T:+$T 3}} dmesg 2>&1 </dev/null | tail -n {DMESG_LINES_KEPT}); add dmesg $? "$k$n$v";;
  logfiles)
    v=; set +f;
    for f in {" ".join(LOG_FILES)}; do
      [ -f "$f" ] || continue;
      if [ -r "$f" ]; then
        k=$(exec ${{T:+$T 3}} tail -n {FILE_LINES_KEPT} "$f" </dev/null | tail -c 100000); v="$v== $f$n$k$n";
      else v="$v=x $f$n"; fi;
    done;
    set -f;
    add logfiles 0 "$v";;
"""

LOGS_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
