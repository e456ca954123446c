#!/bin/sh
# The forced command of a key that may run nothing but fleettui's questions. Made by scripts/remote_commands.py.
LC_ALL=C
export LC_ALL

refuse() {
    echo "fleettui-only: $1" >&2
    exit 126
}

asked=$SSH_ORIGINAL_COMMAND
token=${asked##* }
case $token in
????????????????) ;;
*) refuse "not a command of fleettui" ;;
esac
case $token in
*[!0-9a-f]*) refuse "not a command of fleettui" ;;
esac
digest=$(printf %s "${asked%"$token"}" | sha256sum) || refuse "no sha256sum on this machine"
case ${digest%% *} in
@digests@
*) refuse "not a command of this fleettui; this script belongs to another version" ;;
esac
