#!/bin/sh
# What each upsampling costs: the table that nufft::choose is fitted to (upsampling/width/ms of type 1 + type 2).
#
#     cargo build --release -p rayspin-kernels --example nufft_bench
#     sh benches/upsampling.sh
set -eu
bench=$(dirname "$0")/../target/release/examples/nufft_bench

# One measurement, or nothing where the tolerance cannot be met: $1 points, $2 matrix, $3 precision, $4 tolerance, $5 upsampling.
measure() {
    "$bench" --points "$1" --matrix "$2" --precision "$3" --tolerance "$4" --upsampling "$5" \
        --threads 2 --plans 1 --runs 4 --check 0 2>/dev/null |
        sed -n 's/.*"width": \([0-9]*\),.*"type1_ms": \([0-9.]*\),.*"type2_ms": \([0-9.]*\),.*/\1 \2 \3/p'
}

for points in 100000 1000000 4000000; do
    for problem in "512,512 f32 1e-2" "512,512 f32 1e-3" "512,512 f32 1e-5" "512,512 f64 1e-9" \
        "128,128,128 f32 1e-2" "128,128,128 f32 1e-3" "128,128,128 f32 1e-5" \
        "128,128,128 f64 1e-6" "128,128,128 f64 1e-9"; do
        set -- $problem
        line="$points $1 $2 $3"
        for upsampling in 2 1.5 1.25; do
            found=$({ measure "$points" "$1" "$2" "$3" $upsampling; measure "$points" "$1" "$2" "$3" $upsampling; } |
                awk '{ ms = $2 + $3; if (!width || ms < least) least = ms; width = $1 } END { if (width) printf "%d/%.1f", width, least }')
            [ -z "$found" ] || line="$line $upsampling/$found"
        done
        echo "$line"
    done
done
