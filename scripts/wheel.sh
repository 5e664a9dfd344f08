#!/bin/sh
# Builds the wheel of Python's package into dist/wheels, for Python 3.10 or newer.
# `scripts/wheel.sh` builds it for this machine's Linux, from the crates that `make build` compiled. On a GPU it wants NVRTC, from a toolkit
# or from the packages of PyPI.
# `scripts/wheel.sh release` builds the one that travels: for Linux with glibc 2.28 or newer, with kernels compiled beforehand
# (scripts/kernels.sh), so that a GPU needs its driver alone.
# `scripts/wheel.sh test` builds it without optimisation, installs it beside NumPy in a fresh environment and runs its tests there.
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
manifest=crates/programs/python/Cargo.toml
case ${1:-} in
"")
    exec maturin build --release --locked --manifest-path $manifest --out dist/wheels --compatibility linux
    ;;
release)
    scripts/kernels.sh
    RAYSPIN_KERNELS_EMBED=$PWD/target/kernels/rayspin.kernels exec \
        maturin build --release --features precompiled --locked --manifest-path $manifest --out dist/wheels --zig --compatibility manylinux_2_28
    ;;
test) ;;
*)
    echo "usage: scripts/wheel.sh [release | test]" >&2
    exit 2
    ;;
esac
rm -rf target/wheel
maturin build --profile dev --locked --manifest-path $manifest --out target/wheel --compatibility linux
$tools/bin/python -m venv --clear .tools/wheel-test
python=$PWD/.tools/wheel-test/bin/python
$python -m pip install --quiet --disable-pip-version-check -r scripts/requirements-wheel-tests.txt target/wheel/*.whl
# Outside the project, where only the installed package is found. Modules for torch and mri-nufft are skipped, since neither is there.
tests=$PWD/crates/programs/python/tests
cd target/wheel
$python -m pytest --quiet -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors --pyargs rayspin "$tests"
$python -m mypy --strict --cache-dir /dev/null -p rayspin
$python -m mypy.stubtest rayspin._rayspin
