#!/bin/sh
# Every comparison with a peer on this machine; one file of raw results each under benches/results/<date>-<host kind>/.
set -eu
cd "$(dirname "$0")/../.."
python=.tools/bench/bin/python
if [ ! -x $python ] || ! cmp -s benches/peers/requirements.txt .tools/bench.installed; then
    rm -rf .tools/bench
    python3 -m venv .tools/bench
    $python -m pip install --quiet --disable-pip-version-check -r benches/peers/requirements.txt
    cp benches/peers/requirements.txt .tools/bench.installed
fi
cargo build --release --locked --quiet --package rayspin-cli
cargo build --release --locked --quiet --package rayspin-kernels --examples
cargo build --release --locked --quiet --package rayspin-primitives --examples
folder=benches/results/$(date +%Y-%m-%d)-${RESULTS_DEVICE:-cpu}
mkdir -p "$folder"
{ grep -m 1 'model name' /proc/cpuinfo; nproc; rustc --version; $python --version; cat benches/peers/requirements.txt; } > "$folder/machine.txt"
echo "# target/release/examples/nudft_bench" > "$folder/nudft.txt"
target/release/examples/nudft_bench | tee -a "$folder/nudft.txt"
for peer in fft filters histogram nufft cardiac scans scaling; do
    echo "== $peer"
    echo "# $python benches/peers/$peer.py" > "$folder/$peer.txt"
    $python benches/peers/$peer.py | tee -a "$folder/$peer.txt"
done
