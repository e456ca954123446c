"""The loop that asks engines by the machine's own curl or wget; only where neither SSH forwarding nor a
direct connection works.

Section: `get:<port>/<path>`, one a request, answered as section `get`: the HTTP answer with status line and
headers; of metrics only the lines that are read, out of 56 KB. Exit codes are curl's (7 refused, 28 too
slow); 127: neither tool is there; 64: no path of ours.
"""

from __future__ import annotations

from fleettui.probes.engines import REMOTE_LINES, REMOTE_PATHS

# Proxies are for the internet; a .wgetrc or .netrc in HOME may hold anything. wget prints no headers on
# stdout, so its answer gets a status line of its own.
_START = r"""
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY;
HOME=/; unset WGETRC;
fetch() {
  if command -v curl >/dev/null; then
    v=$(exec ${T:+$T 5} curl -q -s -i -m 3 "http://127.0.0.1:$p$u" </dev/null); r=$?;
    [ $r -eq 7 ] && { v=$(exec ${T:+$T 5} curl -q -s -i -g -m 3 "http://[::1]:$p$u" </dev/null); r=$?; };
  elif command -v wget >/dev/null; then
    v=$(exec ${T:+$T 5} wget -q -T 3 -O - "http://127.0.0.1:$p$u" </dev/null); r=$?;
    [ $r -eq 0 ] && v="HTTP/1.0 200 OK$n$n$v";
  else r=127; fi;
};
c=$(printf "\015x"); c=${c%x};
lines() {
  case $v in
    *"$c$n$c$n"*) h=${v%%"$c$n$c$n"*};;
    *"$n$n"*) h=${v%%"$n$n"*};;
    *) return;;
  esac;
  v=$h$n$n$(say "$v" | grep "$@");
};
"""


def _keeping(path: str) -> str:
    """A case that leaves of an answer to `path` the lines that are read. No name holds what a shell or a
    pattern would take for more than itself (a test looks)."""
    names = " ".join(f"-e ^{name}" for name in REMOTE_LINES[path])
    return f"{path}) lines {names};;"


_CASES = rf"""
  get:*)
    p=${{w#get:}}; u=/${{p#*/}}; p=${{p%%/*}}; v=; r=64;
    case $u in
      {"|".join(REMOTE_PATHS)}) [ "$p" -gt 0 ] && fetch;;
    esac;
    case $u in {" ".join(map(_keeping, REMOTE_LINES))} esac;
    add get $r "$v";;
"""

ENGINE_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
