#!/bin/sh
# Runs the tests of Python's package and its speeds on this machine's GPU, from the folder that python-gpu-pack.sh made. Needs no network.
set -eu
cd "$(dirname "$0")"
[ -f packages.tar.xz ] || cd ../dist/python-gpu
mkdir -p packages
tar -xJf packages.tar.xz -C packages
export PYTHONPATH="$PWD/packages"
python3 -m venv --clear venv
# The packages of the Python that has torch, which may be an environment itself.
python3 -c 'import site; print("\n".join(site.getsitepackages()))' > "$(venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/parent.pth"
venv/bin/python -m pip install --quiet --no-index --no-deps rayspin-*.whl
echo "== tests"
failed=0
venv/bin/python -m pytest --quiet -p no:cacheprovider tests || failed=1
echo "== speeds of calls"
for device in cuda cpu; do
    echo "$device"
    ./nufft_calls $device
    ./cardiac_calls "${RAYSPIN_DATA:-../../../shared/data}/mri/cardiac_radial_12ch.h5" $device
    venv/bin/python arrays.py $device
done
exit $failed
