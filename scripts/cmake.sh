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

scripts/venv.sh
echo "fetching cmake (needed once, to build HDF5) into .tools/ ..."
.tools/venv/bin/python -m pip install --quiet --disable-pip-version-check 'cmake>=3.26,<5'
mkdir -p .tools/bin
ln -sf ../venv/bin/cmake .tools/bin/cmake
new_enough .tools/bin/cmake || { echo "error: the fetched .tools/bin/cmake does not run or is older than $need" >&2; exit 1; }
