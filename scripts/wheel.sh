#!/bin/sh
# Builds the wheel of Python's package into dist/wheels, for Linux with glibc 2.28 or newer and Python 3.10 or newer.
# The wheel carries kernels compiled beforehand (scripts/kernels.sh), so that a GPU needs its driver alone.
# `scripts/wheel.sh test` builds it without optimisation and with few kernels, installs it beside NumPy in a fresh environment and runs
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
RAYSPIN_CUDA_PATH="$(scripts/nvrtc.sh)" "${CARGO:-cargo}" xtask kernels --few --only 9.0 --out target/wheel/few.kernels
RAYSPIN_KERNELS_EMBED=$PWD/target/wheel/few.kernels \
    maturin build --profile dev --features precompiled --locked --manifest-path $manifest --out target/wheel --compatibility linux
$tools/bin/python -m venv --clear .tools/wheel-test
python=$PWD/.tools/wheel-test/bin/python
$python -m pip install --quiet --disable-pip-version-check -r scripts/requirements-wheel-tests.txt target/wheel/*.whl
# Outside the project, where only the installed package is found. Modules for torch and mri-nufft are skipped, since neither is there.
tests=$PWD/crates/python/tests
cd target/wheel
$python -m pytest --quiet -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors --pyargs rayspin "$tests"
"${python%python}rayspin" info --json >info.json
if ! grep -q '"origin": *"this program"' info.json; then
    cat info.json >&2
    echo "error: the wheel carries no kernels" >&2
    exit 1
fi
$python -m mypy --strict --cache-dir /dev/null -p rayspin
$python -m mypy.stubtest rayspin._rayspin
