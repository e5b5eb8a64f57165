#!/bin/sh
# Makes .venv from the locks: `environment.sh run` for the dashboard, `environment.sh dev` for the
# tests too. Does nothing where nothing has changed, and starts anew where an earlier installation
# was interrupted or the folder was moved or copied.
set -eu
cd "$(dirname "$0")/.."
kind=$1

say() { echo "$*" >&2; }
die() { say "$*"; exit 2; }

lock_of() { if [ "$1" = dev ]; then echo requirements-dev.lock; else echo requirements.lock; fi; }
state_of() { echo "$PWD $(cat pyproject.toml "$(lock_of "$1")" | cksum)"; }
runs() { .venv/bin/python -c '' 2>/dev/null; }
is_ready() { [ "$(cat ".venv/.ready-$1" 2>/dev/null)" = "$(state_of "$1")" ] && runs; }
is_finished_here() {
    case $(cat .venv/.ready-run 2>/dev/null) in "$PWD "*) runs ;; *) return 1 ;; esac
}

find_python() {
    wanted='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
    if [ -n "${PYTHON:-}" ]; then
        "$PYTHON" -c "$wanted" 2>/dev/null ||
            die "PYTHON=$PYTHON is not a Python 3.11, 3.12 or 3.13: name one that is."
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.13 python3.12 python3.11; do
        if "$name" -c "$wanted" 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    die "No Python 3.11, 3.12 or 3.13 on the PATH: install one, or name it with PYTHON=/path/to/python."
}

# The standard way fails on Debian and Ubuntu without python3-venv: they keep ensurepip apart.
create() {
    rm -rf .venv
    "$1" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    command -v uv >/dev/null && uv venv --quiet --python "$1" .venv && return
    rm -rf .venv
    "$1" -m pip --version >/dev/null 2>&1 &&
        "$1" -m pip install -qq --upgrade --target build/virtualenv --require-hashes \
            -r requirements-virtualenv.lock &&
        PYTHONPATH=build/virtualenv "$1" -m virtualenv --quiet .venv && return
    die "Cannot make .venv: install the package python3-venv and try again."
}

install() {
    if .venv/bin/python -m pip --version >/dev/null 2>&1; then
        .venv/bin/python -m pip install -qq --no-input --no-compile --no-deps \
            --no-build-isolation "$@"
    else
        uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation "$@"
    fi
}

# Done at once, since where Python may not write, each process would compile all it imports again.
# Left out is what no command imports; a file that is no Python of this version is no error.
compile() {
    .venv/bin/python -m compileall -qq -j 0 -x '/(tests|pip|mypy)/' \
        .venv/lib analytics app data || :
}

is_ready "$kind" && exit 0

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_USER=0
if ! is_finished_here; then
    python=$(find_python)
    say "Making .venv with $("$python" --version)"
    create "$python"
fi
rm -f .venv/.ready-*
say "Installing packages, about a minute"
# The build backend comes first: a package without a wheel is built with it, and so is Faultline.
awk '/^[a-z]/ { keep = /^(setuptools|wheel|packaging)==/ } keep' requirements.lock >.venv/backend.lock
install --require-hashes -r .venv/backend.lock
install --require-hashes -r "$(lock_of "$kind")"
install -e .
compile
state_of run >.venv/.ready-run
[ "$kind" = run ] || state_of "$kind" >".venv/.ready-$kind"
