#!/bin/sh
# Builds the release of the server as two files: target/release/beluga, and target/release/beluga.debug with its debug sections.
#
# The program has a link to the second file by name and checksum. Backtraces, perf and gdb show files and lines as long as both lie in the
# same folder; without it they show functions only. Cargo's own `split-debuginfo` would leave the line tables in the program.
set -eu
cd "$(dirname "$0")/.."
scripts/cargo.sh build --release --package server --bin beluga
cd "${CARGO_TARGET_DIR:-target}/release"
# A second build without a change puts the whole program here again, for Cargo keeps it elsewhere: so there is always something to cut.
objcopy --only-keep-debug beluga beluga.debug
objcopy --strip-debug --add-gnu-debuglink=beluga.debug beluga beluga.stripped
mv beluga.stripped beluga
