# The targets people use. Each works from a fresh checkout on Debian 12 with Rust: what is missing is installed first.

ARGS ?=

.PHONY: help run test bench soak miri fuzz tidy licences setup redis-suite

help: ## this list
	@echo "Beluga: make <target>"
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 14

run: ## build the release and serve all doors on loopback, data in ./beluga-data; settings: make run ARGS="--memory 1gb"
	@scripts/setup.sh run
	@scripts/release.sh
	@exec target/release/beluga --data ./beluga-data --xrpc-port 33660 $(ARGS)

test: ## everything: format, clippy, unit, crash and client tests, documents; ends with one summary
	@scripts/setup.sh test
	@scripts/cargo.sh xtask test

bench: ## compare with redis-server, gRPC and MariaDB on this machine, through their own clients too; writes docs/bench/ (about an hour and a half; ARGS=--quick for some minutes)
	@scripts/setup.sh bench
	@scripts/release.sh
	@scripts/cargo.sh run --release --package bench --features grpc -- all $(ARGS)
	@scripts/cargo.sh run --release --package bench --features grpc -- xrpc --out docs/bench $(ARGS)
	@scripts/cargo.sh run --release --package bench --features grpc -- clients --out docs/bench $(ARGS)
	@scripts/cargo.sh run --release --package bench --features grpc -- types --out docs/bench $(ARGS)
	@scripts/cargo.sh run --release --package bench --features grpc -- postgres --out docs/bench $(ARGS)

soak: ## hours of crash, differential and simulation tests; SOAK_MINUTES=60 by default
	@scripts/setup.sh soak
	@scripts/cargo.sh xtask soak

miri: ## the unit tests that Miri can run, for undefined behaviour (installs a nightly compiler)
	@scripts/setup.sh miri
	@scripts/miri.sh

fuzz: ## random bytes for whatever reads bytes from outside, FUZZ_SECONDS=60 for each target (installs a nightly compiler)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh

redis-suite: ## files of Redis' own test suite, from Debian's source package, against target/debug/beluga or SERVER_UNDER_TEST; FILES="unit/sort ..." names others
	@scripts/redis_suite.sh $(FILES)

tidy: ## are the documents true? Only the checks that need no test run
	@scripts/cargo.sh xtask tidy

licences: ## check the licences and known advisories of all dependencies with cargo-deny (installs it, some minutes the first time)
	@scripts/setup.sh licences
	@scripts/cargo.sh deny check licenses bans sources
	@mkdir -p target
	@scripts/advisories.sh

setup: ## install what `make test` needs, and nothing else
	@scripts/setup.sh test
