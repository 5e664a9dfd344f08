#!/bin/sh
# Every comparison with a peer on this machine; one file of raw results each under benches/results/<date>-<host kind>/, which begins with the
# versions and flags of the peers. `build.sh` makes these; BART is taken where it is on the PATH.
set -eu
cd "$(dirname "$0")/../.."
benches/peers/build.sh
python=.tools/bench/bin/python
cargo build --release --locked --quiet --package rayspin-cli
cargo build --release --locked --quiet --package rayspin-kernels --examples
cargo build --release --locked --quiet --package rayspin-primitives --examples
folder=benches/results/$(date +%Y-%m-%d)-${RESULTS_DEVICE:-cpu}
mkdir -p "$folder"
{ grep -m 1 'model name' /proc/cpuinfo; nproc; rustc --version; $python --version; $python -m pip list --format freeze; } > "$folder/machine.txt"
echo "# target/release/examples/nudft_bench" > "$folder/nudft.txt"
target/release/examples/nudft_bench | tee -a "$folder/nudft.txt"
for peer in fft filters histogram ladders_cpu nufft type3 cardiac file_to_file scans scaling subspace; do
    echo "== $peer"
    echo "# $python benches/peers/$peer.py" > "$folder/$peer.txt"
    $python benches/peers/versions.py $peer | tee -a "$folder/$peer.txt"
    $python benches/peers/$peer.py | tee -a "$folder/$peer.txt"
done
