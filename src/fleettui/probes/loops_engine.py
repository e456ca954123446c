"""The loop that asks engines by the machine's own curl or wget; only where neither SSH forwarding nor a
direct connection works.

Section: `get:<port>/<path>`, one a request, answered as section `get`: the HTTP answer with status line and
headers. Exit codes are curl's (7 refused, 28 too slow); 127: neither tool is there; 64: no path of ours.
"""

from __future__ import annotations

from fleettui.probes.engines import REMOTE_PATHS

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
"""

_CASES = rf"""
  get:*)
    p=${{w#get:}}; u=/${{p#*/}}; p=${{p%%/*}}; v=; r=64;
    case $u in
      {"|".join(REMOTE_PATHS)}) [ "$p" -gt 0 ] && fetch;;
    esac;
    add get $r "$v";;
"""

ENGINE_LOOP = (_START, _CASES)
"""What runs once at the start, and the cases of the loop."""
