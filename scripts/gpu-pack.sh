#!/bin/sh
# Builds what a machine with a GPU and without Rust needs into dist/gpu: the test programs that run over every device, the
# benchmarks, and the command itself. The folder travels alone; gpu-test.sh and gpu-bench.sh in it run everything.
set -eu
cd "$(dirname "$0")/.."
out=dist/gpu
rm -rf $out
mkdir -p $out/tests $out/bin
cargo=${CARGO:-cargo}
# Test programs print their paths in cargo's messages.
$cargo test --release --locked --no-run --message-format=json -p rayspin-kernels -p rayspin-mri --lib --test devices |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u | while read -r program; do
    name=$(basename "$program")
    strip -o "$out/tests/${name%-*}" "$program"
done
$cargo build --release --locked -p rayspin-cli
strip -o $out/bin/rayspin target/release/rayspin
for example in crates/kernels/examples/*.rs; do
    name=$(basename "$example" .rs)
    case $name in *gpu*)
        $cargo build --release --locked -p rayspin-kernels --example "$name"
        strip -o $out/bin/"$name" target/release/examples/"$name" ;;
    esac
done
cp scripts/gpu-test.sh scripts/gpu-bench.sh $out/
du -sh $out
