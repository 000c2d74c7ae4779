#!/usr/bin/env bash
# Runs under Miri those unit tests that need no disk, socket or ring of the kernel: the crates with unsafe code and what is built on their atomics. It finds undefined
# behaviour that a test which passes hides: use after free, unaligned or uninitialised reads, data races, broken aliasing.
set -euo pipefail
cd "$(dirname "$0")/.."

export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}"
export CARGO_TARGET_DIR=target/miri
for crate in stdx os pager btree reactor; do
    printf '== %s\n' "$crate"
    scripts/cargo.sh +nightly miri test --quiet -p "$crate" --lib -- "$@"
done
