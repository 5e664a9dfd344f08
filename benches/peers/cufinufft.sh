#!/bin/sh
# cuFINUFFT compiled from its source for one kind of GPU, by default compute capability 9.0, against CUDA 13: its wheel is made for CUDA 12.
# The folder then travels to a machine with the GPU, where PYTHONPATH names it for nufft_gpu.py. It takes 20 minutes on two cores.
#
#     benches/peers/cufinufft.sh FOLDER [sm_90]
set -eu
out=$(realpath -m "$1")
arch=${2:-sm_90}
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
cd "$made"
python3 -m venv v
v/bin/python -m pip install --quiet --disable-pip-version-check 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' \
    'nvidia-nvvm==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cufft==12.0.*' scikit-build-core cmake ninja
v/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation -d . cufinufft==2.5.1
tar -xzf cufinufft-2.5.1.tar.gz
source=cufinufft-2.5.1
cuda=$(dirname "$(dirname "$(find v -path '*/bin/nvcc')")")
ln -s libcufft.so.12 "$cuda/lib/libcufft.so"
ln -s libcudart.so.13 "$cuda/lib/libcudart.so"
flags="-O3 -std=c++17 -arch=$arch --extended-lambda --extra-device-vectorization"
compile() {
    object=$(echo "$1" | tr / _).o
    # shellcheck disable=SC2086
    "$cuda/bin/nvcc" $flags -rdc=true -cudart shared -Xcompiler -fPIC,-fvisibility=hidden -DFINUFFT_DLL -Ddll_EXPORTS -Wno-deprecated-declarations \
        -x cu -I$source/include -I"$cuda/include" -I"$cuda/include/cccl" -c "$source/src/$1" -o "$object"
}
for file in common/utils.cpp common/kernel.cpp common/pswf.cpp cuda/precision_independent.cu cuda/common.cu cuda/cufinufft.cu cuda/spreadinterp.cpp \
    cuda/memtransfer_wrapper.cu cuda/deconvolve_wrapper.cu cuda/1d/cufinufft1d.cu cuda/1d/spread1d_wrapper.cu cuda/1d/interp1d_wrapper.cu \
    cuda/2d/cufinufft2d.cu cuda/2d/spread2d_wrapper.cu cuda/2d/interp2d_wrapper.cu cuda/3d/cufinufft3d.cu cuda/3d/spread3d_wrapper.cu \
    cuda/3d/interp3d_wrapper.cu; do
    echo "$file"
    compile $file
done
mkdir -p "$out/cufinufft"
"$cuda/bin/nvcc" -arch="$arch" -rdc=true -shared -cudart shared -L"$cuda/lib" ./*.o -lcufft -lcudadevrt -o "$out/cufinufft/libcufinufft.so"
strip "$out/cufinufft/libcufinufft.so"
cp $source/python/cufinufft/cufinufft/*.py "$out/cufinufft/"
echo "compiled from its source, nvcc 13.0 $flags, cuFFT of CUDA 13.0" > "$out/cufinufft/built.txt"
