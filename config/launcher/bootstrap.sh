#!/usr/bin/env bash
# bootstrap.sh VENV LOCK [LOCK…]: make VENV hold what the first LOCK pins, every file checked against its hash.
# Nothing is done when VENV was made from any of the LOCKs as they are now (the test lock holds all of the run lock).
set -euo pipefail

venv=$1
wanted=$2
shift
python=${PYTHON:-python3}
stamp=$venv/.installed
work=""
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

fail() {
    echo "Tollhouse cannot be installed: $1" >&2
    exit 1
}

checksum() { cksum <"$1"; }

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null && [ -f "$stamp" ]; then
    for lock in "$@"; do
        [ "$(cat "$stamp")" != "$(checksum "$lock")" ] || exit 0
    done
fi

command -v "$python" >/dev/null || fail "there is no $python; install Python 3.11 or newer, or name one with PYTHON=…."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version 2>&1) is too old; install Python 3.11 or newer, or name one with PYTHON=…."

work=$(mktemp -d)
quietly() {
    "$@" >"$work/output" 2>&1 || {
        reason=$(grep -i error "$work/output" | tail -n 1 || true)
        fail "$(basename "$1"): $(cut -c 1-300 <<<"${reason:-$(tail -n 1 "$work/output")}")"
    }
}

echo "Installing into $venv from $wanted"
rm -f "$stamp"
"$python" -c 'import venv' 2>/dev/null || fail "$python has no module venv; install it (Debian: python3-venv)."
if "$python" -c 'import ensurepip' 2>/dev/null; then
    [ -x "$venv/bin/pip" ] || quietly "$python" -m venv --clear "$venv"
    pip=("$venv/bin/python" -m pip)
elif "$python" -c 'import pip' 2>/dev/null; then
    [ -x "$venv/bin/python" ] || quietly "$python" -m venv --clear --without-pip "$venv"
    pip=("$python" -m pip --python "$venv/bin/python")
else
    fail "$python has neither ensurepip nor pip; install one (Debian: python3-venv)."
fi

# uv stands in the lock like everything else; only that one entry goes by pip.
awk '/^uv==/ {on = 1} on {print} on && !/\\$/ {exit}' "$wanted" >"$work/uv.lock"
[ -s "$work/uv.lock" ] || fail "$wanted does not pin uv."
quietly "${pip[@]}" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$work/uv.lock"
# pip is slower, but knows mirrors and proxies that only pip was told of.
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r "$wanted" >/dev/null 2>&1 ||
    quietly "${pip[@]}" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$wanted"
checksum "$wanted" >"$stamp"
