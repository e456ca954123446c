"""Who listens on the machine and who is connected there: sections `sockets` and `servers` of the facts loop.

`sockets` counts on the machine, so that 10,000 connections are a few lines here: one line for each listening
address, `0100007F:2CAA 3` (address and port as /proc has them, established connections of that port), and
the number of all listening addresses. Only connections whose local port is listened on count: the other end
of one from the machine to itself is not a second one. Without awk the shell counts, the first rows only.

`servers` lists processes that may be servers of models, with their parents: candidates by `comm` (no lock is
taken for it; reading a command line may hang behind a hung driver), command lines by ps under a time limit.
"""

from __future__ import annotations

LISTENING_KEPT = 400
SERVERS_KEPT = 24
COMMAND_KEPT = 500
_ROWS_WITHOUT_AWK = 2000

# A dollar for awk, which the shell must not expand.
SOCKETS_START = r"""
dollar=$(printf "\044");

count_connections() {
  v=; o=; e=" "; k=0; m=0;
  for f in $c; do
    h=0;
    while read -r a l x s z; do
      h=$((h+1));
      [ $h -lt MAX_ROWS ] || { m=1; break; };
      case $s in
        0A) o="$o $l"; e="$e${l##*:} "; k=$((k+1));;
      esac;
    done <$f;
  done;
  for p in $e; do eval c_$p=0; done;
  for f in $c; do
    h=0;
    while read -r a l x s z; do
      h=$((h+1));
      [ $h -lt MAX_ROWS ] || break;
      [ "$s" = 01 ] || continue;
      p=${l##*:};
      case $e in
        *" $p "*) eval c_$p=$((c_$p+1));;
      esac;
    done <$f;
  done;
  h=0;
  for l in $o; do
    h=$((h+1));
    [ $h -le MAX_PORTS ] || break;
    v="$v$l $((c_${l##*:}))$n";
  done;
  v="$v$k$n";
  [ $m -eq 0 ] || v="${v}more$n";
};
""".replace("MAX_ROWS", str(_ROWS_WITHOUT_AWK)).replace("MAX_PORTS", str(LISTENING_KEPT))

# awk ends with the first file that is not there (IPv6 off). Texts come in by -v: the program has no quotes.
SOCKETS_CASE = r"""
  sockets)
    v=; r=1; c=;
    for f in /proc/net/tcp /proc/net/tcp6; do
      [ -r $f ] && c="$c $f";
    done;
    [ -z "$c" ] || {
      v=$(exec ${T:+$T 2} awk -v L=0A -v E=01 "${dollar}4 == L { if (k++ < MAX_PORTS) a[${dollar}2] }
        ${dollar}4 == E { ++c[substr(${dollar}2, length(${dollar}2) - 3)] }
        END { for (l in a) print l, c[substr(l, length(l) - 3)] + 0; print k + 0 }" $c </dev/null); r=$?;
      [ $r -lt 126 ] || [ $r -gt 127 ] || { count_connections; r=0; };
    };
    add sockets $r "$v";;
  servers)
    v=; r=0; i=; k=0; set +f;
    for f in /proc/[0-9]*; do
      a=; read -r a <$f/comm || continue;
      case $a in
        ollama*|llama*|vllm*|VLLM*|sglang*|python*|lms*|llm*|lm-*|LM*)
          i="$i${i:+,}${f##*/}"; k=$((k+1)); [ $k -lt 200 ] || break;;
      esac;
    done;
    set -f;
    [ -z "$i" ] || {
      v=$(${T:+$T 2} ps -ww -o pid= -o ppid= -o args= -p $i </dev/null |
        grep -i -E "ollama|llama.server|llama.swap|vllm|sglang|lm.?studio" |
        cut -c 1-COMMAND_KEPT | head -n SERVERS_KEPT);
      r=$?;
    };
    add servers $r "$v";;
"""
for _name, _number in (
    ("MAX_PORTS", LISTENING_KEPT),
    ("COMMAND_KEPT", COMMAND_KEPT),
    ("SERVERS_KEPT", SERVERS_KEPT),
):
    SOCKETS_CASE = SOCKETS_CASE.replace(_name, str(_number))
