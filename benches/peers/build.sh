#!/bin/sh
# Peers for this processor, into .tools/bench: Python's packages of requirements.txt, and FFTW, FINUFFT and ducc0 compiled here, since wheels are
# made for any x86-64 processor, and Debian's FFTW for SSE2 and AVX, without fused multiply-adds.
#
#     PEERS=FOLDER benches/peers/build.sh
#
# FOLDER has finufft-native-src.tar.xz, and FFTW's source as fftw*.tar.gz (Debian: apt-get source --download-only fftw3). Without the latter
# Debian's library is taken (libfftw3-dev), which versions.py then says.
set -eu
cd "$(dirname "$0")/../.."
tools=$PWD/.tools
peers=${PEERS:-../shared/peers}
archive=$peers/finufft-native-src.tar.xz
[ -f "$archive" ] || { echo "error: $archive is not there; PEERS names the folder that has it" >&2; exit 1; }
processor=$(grep -m 1 'model name' /proc/cpuinfo)

# What a file is made from; made anew where that has changed.
made() { # file, text
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

wanted=$(cat benches/peers/requirements.txt)
if ! made "$tools/bench/requirements" "$wanted"; then
    rm -rf "$tools/bench"
    python3 -m venv "$tools/bench"
    "$tools/bench/bin/python" -m pip install --quiet --disable-pip-version-check -r benches/peers/requirements.txt
    echo "$wanted" > "$tools/bench/requirements"
fi

fftw=$tools/bench/fftw
source=$(find "$peers" -maxdepth 1 -name 'fftw*.tar.gz' | head -n 1)
if [ -n "$source" ]; then
    wanted="$(sha256sum < "$source") $processor"
    if ! made "$tools/bench/fftw.made" "$wanted"; then
        rm -rf "$fftw" "$tools/bench/fftw.made"
        mkdir -p "$fftw/source"
        tar -xzf "$source" -C "$fftw/source" --strip-components 1
        wide=--disable-avx512
        grep -qw avx512f /proc/cpuinfo && wide=--enable-avx512
        echo "compiling FFTW, which takes minutes ..."
        for precision in --enable-float --disable-float; do
            mkdir -p "$fftw/make$precision"
            (
                cd "$fftw/make$precision" &&
                    ../source/configure --prefix="$fftw" --enable-shared --disable-static --disable-fortran --disable-doc --enable-openmp \
                        --enable-avx2 $wide $precision CFLAGS='-O3 -march=native -fomit-frame-pointer -fstrict-aliasing' &&
                    make -j "$(nproc)" && make install
            ) > "$fftw/log" 2>&1 || { tail "$fftw/log" >&2; exit 1; }
        done
        echo "$wanted" > "$tools/bench/fftw.made"
    fi
    export CPATH="$fftw/include" LDFLAGS="-L$fftw/lib -Wl,-rpath,$fftw/lib"
elif [ ! -f /usr/include/fftw3.h ]; then
    echo "error: neither $peers has FFTW's source nor the system its headers (Debian: libfftw3-dev)" >&2
    exit 1
fi

wanted="$(sha256sum < "$archive") $processor $(cat "$tools/bench/fftw.made" 2>/dev/null || true)"
if ! made "$tools/bench/finufft.made" "$wanted"; then
    folder=$tools/bench/finufft
    rm -rf "$folder"
    mkdir -p "$folder"
    tar -xJf "$archive" -C "$folder"
    echo "compiling FINUFFT ..."
    mkdir -p "$folder/lib"
    make -C "$folder" -j "$(nproc)" lib/libfinufft.so XSIMD_DIR="$folder/deps/xsimd" POET_DIR="$folder/deps/poet" > "$folder/log" 2>&1 ||
        { tail "$folder/log" >&2; exit 1; }
    cp "$folder/lib/libfinufft.so" "$folder/python/finufft/finufft/"
    site=$("$tools/bench/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$folder/python/finufft" > "$site/finufft.pth"
    # As they were given to the compiler, without its warnings and paths.
    grep -m 1 -- ' -c .*src/execute' "$folder/log" | tr ' ' '\n' | grep -E -- '^-(O|m|f|std|D|funroll)' | tr '\n' ' ' > "$tools/bench/finufft.flags"
    echo "$wanted" > "$tools/bench/finufft.made"
fi

ducc0=ducc0==0.42.0
wanted="$ducc0 $processor"
if ! made "$tools/bench/ducc0.made" "$wanted"; then
    echo "compiling ducc0, which takes minutes ..."
    "$tools/bench/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-binary ducc0 "$ducc0"
    echo "$wanted" > "$tools/bench/ducc0.made"
fi
