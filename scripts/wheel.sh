#!/bin/sh
# Builds the wheel of Python's package into dist/wheels, for Linux with glibc 2.28 or newer and Python 3.10 or newer.
# The wheel carries kernels compiled beforehand (scripts/kernels.sh), so that a GPU needs its driver alone.
# `scripts/wheel.sh test` builds it without optimisation and without kernels, installs it beside NumPy in a fresh environment and runs
# its tests there.
set -eu
cd "$(dirname "$0")/.."
tools=.tools/wheel
stamp=$tools/requirements.installed
if ! { [ -x $tools/bin/python ] && cmp -s scripts/requirements-wheel.txt $stamp; }; then
    scripts/venv.sh
    .tools/venv/bin/python -m venv --clear $tools
    echo "fetching the builder of wheels into $tools ..."
    $tools/bin/python -m pip install --quiet --disable-pip-version-check -r scripts/requirements-wheel.txt
    cp scripts/requirements-wheel.txt $stamp
fi
PATH=$PWD/$tools/bin:$PATH
export PATH
manifest=crates/python/Cargo.toml
if [ "${1:-}" != test ]; then
    scripts/kernels.sh
    RAYSPIN_KERNELS_EMBED=$PWD/target/kernels/rayspin.kernels \
        maturin build --release --features precompiled --locked --manifest-path $manifest --out dist/wheels --zig --compatibility manylinux_2_28
    exit 0
fi
rm -rf target/wheel
maturin build --profile dev --locked --manifest-path $manifest --out target/wheel --compatibility linux
$tools/bin/python -m venv --clear .tools/wheel-test
python=$PWD/.tools/wheel-test/bin/python
$python -m pip install --quiet --disable-pip-version-check -r scripts/requirements-wheel-tests.txt target/wheel/*.whl
# Outside the project, where only the installed package is found. Modules for torch and mri-nufft are skipped, since neither is there.
tests=$PWD/crates/python/tests
cd target/wheel
$python -m pytest --quiet -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors --pyargs rayspin "$tests"
$python -m mypy --strict --cache-dir /dev/null -p rayspin
$python -m mypy.stubtest rayspin._rayspin
