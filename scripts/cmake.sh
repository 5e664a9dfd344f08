#!/bin/sh
# Makes sure that a cmake >= 3.26 (what HDF5's build asks for) is found on PATH or in .tools/bin.
# Debian 12 packages 3.25, so the fallback is the wheel from PyPI, kept inside the project.
set -eu
cd "$(dirname "$0")/.."
need=3.26
new_enough() {
    version=$("$1" --version 2>/dev/null | sed -n '1s/cmake version //p') || return 1
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$need" "$version" | sort -V | head -n 1)" = "$need" ]
}
if new_enough .tools/bin/cmake || new_enough cmake; then exit 0; fi

echo "fetching cmake (needed once, to build HDF5) into .tools/ ..."
mkdir -p .tools/bin
requirement='cmake>=3.26,<5'
if python3 -m pip --version >/dev/null 2>&1; then
    python3 -m pip install --quiet --disable-pip-version-check --upgrade --target .tools/python "$requirement"
    binary=.tools/python/cmake/data/bin/cmake
elif python3 -m venv .tools/venv >/dev/null 2>&1; then
    .tools/venv/bin/python -m pip install --quiet --disable-pip-version-check "$requirement"
    binary=$(ls -d .tools/venv/lib/python3*/site-packages/cmake/data/bin/cmake)
else
    echo "error: python3 has neither pip nor venv, so cmake >= $need cannot be fetched" >&2
    echo "hint: apt-get install python3-venv (or a newer cmake), then run make again" >&2
    exit 1
fi
ln -sf "../../$binary" .tools/bin/cmake
new_enough .tools/bin/cmake || { echo "error: the fetched .tools/bin/cmake does not run or is older than $need" >&2; exit 1; }
