#!/bin/sh
# Compares all dependencies with the RustSec advisory database, by cargo-deny. An advisory fails; a database that cannot be fetched
# (no network, or none to where it is kept) does not, and is said so in words that cannot be taken for a success.
set -eu
cd "$(dirname "$0")/.."

not_checked() {
    echo "advisories: NOT CHECKED: $1" >&2
    exit 0
}

scripts/cargo.sh deny --version >/dev/null 2>&1 || not_checked "cargo-deny is not installed; \`make licences\` installs it"
scripts/cargo.sh deny fetch db >target/advisories.log 2>&1 ||
    not_checked "the advisory database could not be fetched ($(grep -m 1 -i error target/advisories.log || tail -n 1 target/advisories.log))"
scripts/cargo.sh deny check --disable-fetch advisories
