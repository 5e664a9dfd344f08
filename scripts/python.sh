#!/bin/sh
# Installs what the interoperability tests call, other programs' readers and writers from PyPI, into .tools/venv.
set -eu
cd "$(dirname "$0")/.."
requirements=scripts/requirements.txt
stamp=.tools/requirements.installed
if [ -x .tools/venv/bin/python ] && cmp -s $requirements $stamp; then exit 0; fi
scripts/venv.sh
echo "fetching Python readers and writers for the interoperability tests into .tools/venv ..."
.tools/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $requirements
cp $requirements $stamp
