#!/bin/sh
# Runs every GPU benchmark that gpu-pack.sh packed and prints their tables; with a folder as argument they are written there too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/bin" ] || here=$here/../dist/gpu
out=${1:-}
"$here/bin/rayspin" info
for program in "$here"/bin/*gpu*; do
    name=$(basename "$program")
    echo "== $name"
    if [ -n "$out" ]; then mkdir -p "$out"; "$program" | tee "$out/$name.txt"; else "$program"; fi
done
