#!/bin/sh
# Builds what a machine with a GPU and without Rust needs into dist/gpu: the test programs that go over every device, the
# benchmarks, and both commands, rayspin and rayspin-ladder. The folder travels alone; gpu-test.sh and gpu-bench.sh in it run everything.
set -eu
cd "$(dirname "$0")/.."
out=dist/gpu
cargo=${CARGO:-cargo}
rm -rf $out
mkdir -p $out/tests $out/bin
# Cargo's messages name what it built: tests by their crate and name, commands and benchmarks by their names.
built() { # folder, name prefix, cargo's arguments
    folder=$1 prefix=$2
    shift 2
    $cargo "$@" --locked --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u |
        while read -r program; do
            name=$(basename "$program")
            [ "$folder" = bin ] || name=${name%-*}
            strip -o "$out/$folder/$prefix$name" "$program"
        done
}
built tests "" test --release --no-run -p rayspin-kernels --lib
built tests kernels_ test --release --no-run -p rayspin-kernels --test devices
built tests kernels_ test --release --no-run -p rayspin-kernels --test conformance
built tests primitives_ test --release --no-run -p rayspin-primitives --test conformance
built tests gallery_ test --release --no-run -p rayspin-gallery --test conformance
built tests mri_ test --release --no-run -p rayspin-mri --test devices
built tests emu_ test --release --no-run -p rayspin-emu --test kernels --test transfers --test textures
built bin "" build --release -p rayspin-cli
built bin "" build --release -p rayspin-ladder-cli
for example in crates/algorithms/kernels/examples/*gpu*.rs; do
    built bin "" build --release -p rayspin-kernels --example "$(basename "$example" .rs)"
done
built bin "" build --release -p rayspin-solve --example direct_gpu
built bin "" build --release -p rayspin-primitives --example sum_calls
# Where `make kernels` has made them, the commands need no NVRTC; tests take them with RAYSPIN_KERNELS and RAYSPIN_PRECOMPILED_ONLY=1.
if [ -f target/kernels/rayspin.kernels ]; then cp target/kernels/rayspin.kernels $out/bin/; fi
cp scripts/gpu-test.sh scripts/gpu-bench.sh $out/
du -sh $out
