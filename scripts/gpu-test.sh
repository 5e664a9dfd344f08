#!/bin/sh
# Runs every test that goes over devices on this machine's GPUs, from the programs that gpu-pack.sh made. Needs a driver and
# NVRTC, no Rust. With SANITIZE=1 also under compute-sanitizer (memcheck, racecheck), on the short tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/tests" ] || here=$here/../dist/gpu
export RAYSPIN_TEST_DEVICES=cuda
"$here/bin/rayspin" info
failed=0
for program in "$here"/tests/*; do
    echo "== $(basename "$program")"
    "$program" --quiet || failed=1
done
if [ "${SANITIZE:-0}" = 1 ]; then
    for tool in memcheck racecheck; do
        echo "== compute-sanitizer --tool $tool"
        # Asking whether memory is pinned is an API error where it is not (cuPointerGetAttribute), which is no fault of a kernel.
        compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 1 "$here/tests/kernels_devices" --quiet --test-threads 1 || failed=1
    done
fi
exit $failed
