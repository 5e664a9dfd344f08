#!/bin/sh
# Builds and runs every program that `rayspin-ladder host` wrote to a folder, on a machine with a GPU and nvcc, and
# prints a line for each. The exit code is 1 if any does not compile, fails or is wrong.
#
#   for name in transpose histogram; do rayspin-ladder host $name --out programs; done
#   benches/host_programs.sh programs
#
# NVCC names another compiler; ARCHITECTURE another GPU than the one here (sm_90a).
set -u
folder=${1:?"usage: $0 FOLDER"}
nvcc=${NVCC:-nvcc}
if [ -z "${ARCHITECTURE:-}" ]; then
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    # Kernels may use instructions that this generation alone has.
    [ "$capability" = 90 ] && capability=90a
    ARCHITECTURE=sm_$capability
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
wrong=0
for source in "$folder"/*.cu; do
    name=$(basename "$source" .cu)
    if ! "$nvcc" -O3 -std=c++17 -arch="$ARCHITECTURE" "$source" -o "$built/$name" >"$built/log" 2>&1; then
        wrong=1
        echo "$name: does not compile: $(grep -m 1 error "$built/log")"
    elif ! "$built/$name" "$folder/$name.bin" >"$built/log" 2>&1; then
        wrong=1
        echo "$name: FAILED: $(tail -n 2 "$built/log" | tr '\n' ' ')"
    else
        tail -n 1 "$built/log"
    fi
done
exit $wrong
