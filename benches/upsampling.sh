#!/bin/sh
# What each upsampling costs on the CPU: the table that nufft::cost is fitted to. Tolerances that no kernel reaches are left out.
#
#     cargo build --release -p rayspin-kernels --example nufft_bench
#     sh benches/upsampling.sh
set -eu
bench=$(dirname "$0")/../target/release/examples/nufft_bench

for upsampling in 1.25 1.5 1.5625 1.6875 1.875 2; do
    for problem in "512,512 1000000 f32 1e-2" "512,512 1000000 f32 1.5e-3" "512,512 1000000 f32 1e-4" "512,512 1000000 f32 1e-5" \
        "256,256 205824 f32 1e-2" "256,256 205824 f32 1.5e-3" "256,256 205824 f32 1e-4" "256,256 205824 f32 1e-5" \
        "128,128,128 1000000 f32 1.5e-3" "128,128,128 1000000 f32 1e-5" "96,96,96 300000 f32 1.5e-3" "96,96,96 300000 f32 1e-5" \
        "512,512 1000000 f64 1e-5" "512,512 1000000 f64 1e-9" "96,96,96 300000 f64 1e-5" "96,96,96 300000 f64 1e-9" \
        "128,128,128 1000000 f64 1e-9"; do
        set -- $problem
        found=$("$bench" --matrix "$1" --points "$2" --precision "$3" --tolerance "$4" --upsampling $upsampling \
            --threads 2 --plans 1 --runs 4 --check 0 2>/dev/null |
            sed -n 's/.*"width": \([0-9]*\), "fine": \(\[[^]]*\]\),.*"type1_ms": \([0-9.]*\),.*"type2_ms": \([0-9.]*\),.*/width \1 fine \2 type1_ms \3 type2_ms \4/p')
        [ -z "$found" ] || echo "--matrix $1 --points $2 --precision $3 --tolerance $4 --upsampling $upsampling $found"
    done
done
