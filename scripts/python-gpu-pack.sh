#!/bin/sh
# Builds what the tests and the speeds of Python's package want on a machine with a GPU into dist/python-gpu: the wheel, the tests, the
# benchmarks, and the packages that they use. The folder travels alone. That machine has Python 3.12, NumPy, torch and CuPy.
set -eu
cd "$(dirname "$0")/.."
out=dist/python-gpu
rm -rf dist/wheels $out
scripts/wheel.sh release
mkdir -p $out
cp -r dist/wheels/rayspin-*.whl crates/programs/python/tests benches/peers/arrays.py benches/peers/file_to_file.py benches/peers/cardiac.py \
    scripts/python-gpu-test.sh $out
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
.tools/wheel/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --ignore-requires-python --python-version 3.12 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 --target "$packages" \
    -r scripts/requirements-python-gpu.txt
# Half of their bytes are tests of their own.
find "$packages" -type d -name tests -prune -exec rm -rf {} +
tar -cJf $out/packages.tar.xz -C "$packages" .
${CARGO:-cargo} build --release --locked -p rayspin-kernels -p rayspin --example nufft_calls --example cardiac_calls
for program in nufft_calls cardiac_calls; do
    strip -o $out/$program target/release/examples/$program
done
du -sh $out
