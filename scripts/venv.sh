#!/bin/sh
# Makes .tools/venv, a Python environment of the project's own with pip in it.
set -eu
cd "$(dirname "$0")/.."
venv=.tools/venv
if [ -x $venv/bin/python ] && $venv/bin/python -m pip --version >/dev/null 2>&1; then exit 0; fi
mkdir -p .tools
make_venv() { rm -rf $venv && python3 -m venv $venv >.tools/venv.log 2>&1; }
if make_venv; then exit 0; fi
# Debian's python3 comes without ensurepip, which a package of its own holds.
if command -v apt-get >/dev/null 2>&1; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    echo "python3 cannot make environments here: installing Debian's python3-venv ..."
    ($as_root apt-get update -qq && $as_root apt-get install -qq -y --no-install-recommends python3-venv) \
        >.tools/apt.log 2>&1 || true
    if make_venv; then exit 0; fi
fi
cat .tools/venv.log >&2
echo "error: python3 -m venv does not work here" >&2
echo "hint: apt-get install python3-venv, then run make again" >&2
exit 1
