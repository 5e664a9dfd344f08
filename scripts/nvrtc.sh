#!/bin/sh
# Says where libnvrtc.so lies in .tools/venv, whatever its Python's version.
set -eu
cd "$(dirname "$0")/.."
for folder in "$PWD"/.tools/venv/lib*/python3*/site-packages/nvidia/*/lib; do
    for file in "$folder"/libnvrtc.so*; do
        if [ -e "$file" ]; then
            echo "$folder"
            exit 0
        fi
    done
done
echo "error: no libnvrtc.so in .tools/venv: scripts/python.sh installs it" >&2
exit 1
