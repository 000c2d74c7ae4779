#!/bin/sh
# Runs cargo, also where a login shell has not put it on the path.
set -eu
cd "$(dirname "$0")/.."
if ! command -v cargo >/dev/null 2>&1; then
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi
if ! command -v cargo >/dev/null 2>&1; then
    echo "cargo was not found: install Rust first (https://rustup.rs), version 1.88 or newer" >&2
    exit 69
fi
exec cargo "$@"
