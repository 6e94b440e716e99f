#!/bin/sh
# Builds the wheel, installs it with its declared dependencies into a fresh environment and uses it from another folder:
# flows, probes and the demo must be inside the wheel, and a broken torch or ray must trouble nothing that does not need it.
set -eu
python=$1
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$root/$python" -m build --quiet --wheel --no-isolation --outdir "$scratch/dist" "$root"
"$root/$python" -m venv "$scratch/env"
"$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$root/constraints.txt" "$scratch"/dist/*.whl
cd "$scratch"
command=$scratch/env/bin/slime-runbook

"$command" --version
"$scratch/env/bin/python" -c "
import runbook
assert runbook.__file__.startswith('$scratch'), runbook.__file__
"
"$command" flows lint

demo() {
    code=0
    "$command" demo --plain >demo.txt || code=$?
    test "$code" = 1
    grep -q 'confirmed  checkpoint-not-loaded' demo.txt
}
demo

mkdir broken
for name in torch ray; do
    echo "raise ImportError('broken on purpose')" >"broken/$name.py"
done
PYTHONPATH=$scratch/broken demo

echo 'wheel: works in a fresh environment, also where torch and ray are broken'
