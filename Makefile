# What can be done here. `make demo` and `make test` need Rust alone; `make gate` also Python 3.11 with pip and a C++ compiler.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test test-kernel machine protections bench bench-seccomp mutants gate audit binaries format clippy doc deny fuzz fuzz-build rules

TARGET := $(or $(CARGO_TARGET_DIR),target)
CARGO := cargo
DENY := scripts/cargo-deny --locked --config deny.toml

help:
	@echo 'make demo    build everything, and run the whole system under .state/'
	@echo 'make test    run every test; as root also those that make sandboxes'
	@echo 'make test-kernel   the last part of make test alone: cgroup v2 and older kernels, each under qemu'
	@echo 'make protections   switch every protection off in turn, as root, and see what misses it'
	@echo 'make bench   time launches and calls beside bubblewrap, as root; the figures also go to target/bench/'
	@echo 'make bench-seccomp   time the system call filter beside the one that seccompiler makes'
	@echo 'make fuzz    feed everything that reads what others wrote with chance, ten minutes each; FUZZ_SECONDS shortens it'
	@echo 'make mutants   change what decides, one place at a time, and list what no unit test notices; needs the network once'
	@echo 'make gate    what every commit must pass, without tests'
	@echo 'make audit   compare the dependencies with the RustSec advisories; needs the network'

binaries:
	$(CARGO) build --workspace --bins

demo: binaries
	scripts/static-stage
	$(TARGET)/debug/boxmaker demo

# The log is kept to say at the end what was skipped and why, which a test that passes would not show. The kernels come last,
# whatever came before; the suite itself skips them, since their programs are built another way.
test: binaries
	@failed=; \
	$(CARGO) test --workspace --no-fail-fast -- --show-output 2>&1 | tee $(TARGET)/test.log || failed=1; \
	$(MAKE) --no-print-directory test-kernel 2>&1 | tee $(TARGET)/test-kernel.log || failed=1; \
	[ -z "$$failed" ] || { echo; echo 'tests failed; target/test.log and target/test-kernel.log have their names'; exit 1; }
	@if { grep -hE '^skipped' $(TARGET)/test.log | grep -v 'make test-kernel'; grep -hE '^skipped' $(TARGET)/test-kernel.log; } \
	    | sort -u | grep . > $(TARGET)/skipped.log; then \
	    echo; echo "$$(wc -l < $(TARGET)/skipped.log) skipped, the rest passed:"; cat $(TARGET)/skipped.log; \
	else \
	    echo; echo 'all passed, none skipped'; \
	fi

# On kernels of Debian, fetched once into ~/.cache. In the machine there are no libraries, so what runs there is static; the
# target is named, or the flag would also hold for what runs while building.
STATIC := x86_64-unknown-linux-gnu
test-kernel:
	@if reason=$$(scripts/kernel-vm); then $(MAKE) --no-print-directory machine; else echo "$$reason"; fi

machine:
	RUSTFLAGS='-C target-feature=+crt-static -C debuginfo=0' $(CARGO) build --target $(STATIC) --target-dir $(TARGET)/static \
	    -p confine -p supervisor -p brokerd -p toolkit -p boxmaker-tests --bin boxmaker-stage --bin boxmaker --bin brokerd \
	    --bin toolkit --bin launch-once --bin launch-probe --bin limits-once
	BOXMAKER_KERNEL_PROGRAMS=$(TARGET)/static/$(STATIC)/debug $(CARGO) test -p boxmaker-tests --test kernel -- --show-output

protections:
	scripts/remove-protections

bench:
	scripts/bench

bench-seccomp:
	$(CARGO) bench -p confine --features reference --bench seccomp

gate: format clippy doc deny fuzz-build rules
	@echo 'gate: passed'

format:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check

clippy:
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --workspace --no-deps

deny:
	$(DENY) check --hide-inclusion-graph bans licenses sources
	$(DENY) --manifest-path fuzz/Cargo.toml check --hide-inclusion-graph bans licenses sources

# The fuzz targets stay buildable; running them is for who has the time. The flag opens doors that are closed otherwise.
fuzz-build: export RUSTFLAGS := --cfg fuzzing
fuzz-build:
	$(CARGO) clippy --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz -- -D warnings
	$(CARGO) build --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz

fuzz:
	scripts/fuzz

# Long, and a fetch the first time: not part of the gate.
mutants:
	scripts/mutants

rules:
	scripts/check-lines
	scripts/check-rooms
	scripts/check-dependencies
	scripts/test-gates

audit:
	$(DENY) check advisories
