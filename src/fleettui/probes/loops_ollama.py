"""Settings of an Ollama server: section `ollama` of the facts loop.

The environment of a process named ollama, where this account may read it, else what systemd says of
ollama.service and of the files it names. Only the names of `ollama_environment` are printed: an environment
holds secrets. Exit code 0: an environment was read, though nothing may be set in it.
"""

from __future__ import annotations

from fleettui.probes.engines.ollama_environment import NAMES

_ANY_NAME = "|".join(f"OLLAMA_{name}=*" for name in NAMES)

OLLAMA_START = f"""
keep_ollama() {{
  for a in $1; do
    a=${{a#Environment=}}; a=${{a#$Q}};
    case $a in
      {_ANY_NAME}) v="$v$a$n";;
    esac;
  done;
}};
Q=$(printf "\\042");
"""

# The server is the oldest process of that name; runners have its environment and more.
OLLAMA_CASE = r"""
  ollama)
    v=; r=1; l=; set +f;
    for f in /proc/[0-9]*; do
      a=; read -r a <$f/comm || continue;
      [ "$a" = ollama ] && [ -r $f/environ ] || continue;
      i=${f##*/}; [ -z "$l" ] || [ $i -lt $l ] || continue;
      l=$i;
    done;
    set -f;
    [ -z "$l" ] || {
      e=$(exec ${T:+$T 2} tr "\000" "\n" </proc/$l/environ); r=$?;
      [ -n "$e" ] || r=1;
      keep_ollama "$e";
    };
    [ $r -eq 0 ] || {
      v=;
      e=$(exec ${T:+$T 2} systemctl show ollama.service -p LoadState -p Environment -p EnvironmentFiles </dev/null);
      case $e in
        *LoadState=loaded*) r=0;;
      esac;
      keep_ollama "$e";
      for f in $e; do
        f=${f#EnvironmentFiles=};
        case $f in
          /*)
            if [ -r $f ]; then while read -r l; do keep_ollama "$l"; done <$f;
            elif [ -e $f ]; then r=1; fi;;
        esac;
      done;
    };
    [ $r -eq 0 ] || v=;
    add ollama $r "$v";;
"""  # noqa: E501 - one command
