#!/bin/sh
# Builds the wheel, installs it into a fresh environment that sees only the dependencies, and uses it from another folder:
# flows, probes and the demo must be inside the wheel, and the command must work without the checkout.
set -eu
python=$1
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$root/$python" -m build --quiet --wheel --no-isolation --outdir "$scratch/dist" "$root"
"$root/$python" -m venv "$scratch/env"
site=$("$scratch/env/bin/python" -c 'import site; print(site.getsitepackages()[0])')
"$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$scratch"/dist/*.whl
# The heavy dependencies are borrowed from the checkout's environment; our own code is not, since it is installed editable there.
"$root/$python" - "$site" <<'PY'
import pathlib, site, sys
borrowed = pathlib.Path(site.getsitepackages()[0])
target = pathlib.Path(sys.argv[1])
for entry in borrowed.iterdir():
    name = entry.name.lower()
    if "slime_runbook" in name or "slime-runbook" in name or name.startswith(("__editable__", "_distutils_hack", "distutils-precedence", "pip", "__pycache__")):
        continue
    if not (target / entry.name).exists():
        (target / entry.name).symlink_to(entry)
PY
cd "$scratch"
command=$scratch/env/bin/slime-runbook
"$command" --version
"$scratch/env/bin/python" -c "
import runbook, pathlib
assert str(pathlib.Path(runbook.__file__)).startswith('$scratch'), runbook.__file__
"
"$command" flows lint
code=0
"$command" demo --plain >demo.txt || code=$?
test "$code" = 1
grep -q 'checkpoint-not-loaded' demo.txt
echo 'wheel: works in a fresh environment'
