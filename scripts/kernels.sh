#!/bin/sh
# Compiles kernels beforehand into target/kernels/rayspin.kernels. Arguments are those of `cargo xtask kernels`.
#
# It installs an NVRTC of its own: the oldest that knows compute capability 12.0, so that every driver from CUDA 12.8 on loads the
# result. CUDA 12.8 is also the oldest driver that Rayspin takes.
set -eu
cd "$(dirname "$0")/.."
requirements=scripts/requirements-kernels.txt
folder=.tools/nvrtc
if ! cmp -s $requirements $folder/requirements.installed; then
    scripts/venv.sh
    echo "fetching the compiler of kernels into $folder ..."
    rm -rf $folder
    .tools/venv/bin/python -m pip install --quiet --disable-pip-version-check --target $folder -r $requirements
    # By these names it is found before a toolkit's.
    ln -s libnvrtc.so.12 $folder/nvidia/cuda_nvrtc/lib/libnvrtc.so
    cp $requirements $folder/requirements.installed
fi
LD_LIBRARY_PATH=$PWD/$folder/nvidia/cuda_nvrtc/lib exec "${CARGO:-cargo}" xtask kernels --nvrtc 12.8 "$@"
