#!/bin/sh
# Peers beside Rayspin on a machine with an NVIDIA GPU and the CUDA toolkit: raw files in a folder, each with the versions and flags of its peers.
#
#     PYTHON=python3 BIN=dist/gpu/bin benches/peers/gpu.sh FOLDER [histogram pi sum fft ladders_gpu nufft launch ladders whole file_to_file]
#
# BIN has rayspin, rayspin-ladder and the examples nufft_gpu_bench, nudft_gpu, gpu_fft and sum_calls; PYTHON has torch and, for nufft,
# cufinufft, which `cufinufft.sh` makes, for file_to_file SigPy, ismrmrd and CuPy. Parts without a name: all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${BIN:-$here/../../dist/gpu/bin}" && pwd)
python=${PYTHON:-python3}
out=$1
shift
[ $# -gt 0 ] || set -- histogram pi sum fft ladders_gpu nufft launch ladders whole file_to_file
mkdir -p "$out"
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
flags="-O3 -std=c++17 -arch=native"

machine() {
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    nvcc --version | tail -n 2 | head -n 1
    grep -m 1 'model name' /proc/cpuinfo
    nproc
}

peer() {
    # shellcheck disable=SC2086
    [ -x "$made/$1" ] || nvcc $flags -DFLAGS="\"$flags\"" "$here/$1.cu" -o "$made/$1"
    echo "$ $1"
    "$made/$1"
    echo
}

ladder() {
    echo "$ rayspin-ladder $*"
    "$bin/rayspin-ladder" "$@" -q || echo "[exit $?]"
    echo
}

histogram() {
    peer histogram_cub
    for case in walk uniform constant walk-counts uniform-counts constant-counts tomogram-256 tomogram-4096 uniform-256 uniform-4096 \
        walk-u16 uniform-u16 constant-u16 tomogram-u8; do
        ladder histogram --case $case --device cuda --variant gpu-one-pass gpu-copies gpu-runs --budget 0.2
    done
    ladder histogram --case walk-counts --one-buffer --device cuda --variant gpu-one-pass gpu-copies gpu-runs --budget 0.2
    peer histogram_cub
}

pi() {
    peer pi_curand
    ladder pi --device cuda --budget 0.3
    ladder pi --device cuda --budget 0.3 --variant gpu-shuffles gpu-carry --launch stream
    peer pi_curand
}

sum() {
    peer sum_cub
    for launch in graph stream single; do
        ladder reduction --device cuda --variant gpu-wide gpu-one-pass gpu-flags --launch $launch --budget 0.3
        ladder reduction --device cuda --variant gpu-wide gpu-one-pass gpu-flags --launch $launch --one-buffer --budget 0.3
    done
    ladder reduction --case 2^28-f32 --device cuda --budget 0.3
    ladder reduction --case 2^28-i32 --device cuda --budget 0.3
    echo "$ sum_calls"
    "$bin/sum_calls"
    echo
    peer sum_cub
}

fft() {
    echo "$ gpu_fft"
    "$bin/gpu_fft"
}

ladders_gpu() {
    for case in bits uniform-f32 uniform-f64 normal-f32 normal-f64 log-normal-f32 log-normal-f64 poisson-4 poisson-1000; do
        ladder random --case $case --device cuda --variant gpu-grid --budget 0.4
    done
    ladder transpose matrix-product --device cuda --budget 0.3
    echo "$ nudft_gpu 128x128x128 65536 gpu-wgmma"
    "$bin/nudft_gpu" 128x128x128 65536 gpu-wgmma
    echo
    echo "$ $python benches/peers/ladders_gpu.py"
    "$python" "$here/ladders_gpu.py"
}

nufft() {
    echo "$ $python benches/peers/nufft_gpu.py nufft_gpu_bench"
    "$python" "$here/nufft_gpu.py" "$bin/nufft_gpu_bench"
}

# Every variant that a graph can hold, asked for as one.
launch() {
    ladder nufft-type1 nufft-type2 --device cuda --launch graph --budget 0.3
    ladder nufft-type1 nufft-type2 --case 256x256x8 --device cuda --launch graph --budget 0.3
}

ladders() {
    ladder --all --device cuda --budget 0.3 --rounds 9 --json "$out/ladders.json"
}

whole() {
    echo "$ $python benches/whole_run.py"
    "$python" "$here/../whole_run.py" "$bin/rayspin"
}

file_to_file() {
    echo "$ $python benches/peers/file_to_file.py --device cuda --matrix 128 --spokes 6000"
    RAYSPIN="$bin/rayspin" "$python" "$here/file_to_file.py" --device cuda --matrix 128 --spokes 6000
}

for part in "$@"; do
    echo "== $part"
    { machine; echo; } > "$out/$part.txt"
    "$part" >> "$out/$part.txt" 2>&1 || echo "[$part: exit $?]" | tee -a "$out/$part.txt"
done
