# fermata: everything starts here. Each line calls one script of tools/; docs/development.md tells more.
# Set-up steps end at once when there is nothing to do, so every target may be asked for at any time.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run model build check test long bench asan tsan fuzz soak format setup clean
MAKEFLAGS += --no-builtin-rules --no-print-directory
.NOTPARALLEL:
ARGS ?=

help:
	@printf '%s\n' \
	  'fermata: an LLM inference server whose generations can be paused, inspected and resumed at any token, exactly.' '' \
	  '  make run      set up this machine, build, and serve on 127.0.0.1:8080      (first time: some minutes)' \
	  '                make run ARGS=demo shows a pause in the terminal; ARGS='\''serve --port 9000'\'' passes your own' \
	  '  make model    make the default model ready, where fermata looks for it' \
	  '  make check    format, lint, includes, unit and simulation tests           (a minute; the first time the linter takes some)' \
	  '  make test     everything: check, model tests, sanitizers, fuzzing, soak   (some 40 minutes from nothing)' \
	  '  make long     simulation and oracle with ten times the seeds, others each time; true pauses; two hours of soak' \
	  '  make build    build the product and its tests in build/release' \
	  '  make bench    measure against llama.cpp from the same sources; writes JSON' \
	  '  make asan     unit and simulation tests under address and undefined-behaviour sanitizers' \
	  '  make tsan     the same under the thread sanitizer' \
	  '  make fuzz     fuzz the folds of text; FUZZ_SECONDS=60 for each target' \
	  '  make soak     mixed load with interrupts, every answer held against its solo run; SOAK_SECONDS=60' \
	  '  make format   put every source file into the house format' \
	  '  make setup    only bring what is needed: packages, pinned sources, model' \
	  '  make clean    remove build/; what was fetched and built once stays in .deps/ (make clean ALL=1 removes it too)' '' \
	  'Needs Debian bookworm, and root or sudo the first time; nothing else. See docs/development.md.'

run:
	@tools/setup-packages run
	@tools/fetch
	@tools/build-llama
	@tools/build product
	@tools/run $(ARGS)

model:
	@tools/setup-packages run
	@tools/fetch
	@tools/build-llama
	@tools/build product
	@tools/prepare-model

setup:
	@tools/setup-packages test
	@tools/fetch
	@tools/setup-python
	@tools/setup-node
	@tools/build-llama

build: setup
	@tools/build release

check: build
	@tools/check

test: build
	@tools/test

long: build
	@tools/long $(ARGS)

asan: setup
	@tools/test asan

tsan: setup
	@tools/test tsan

fuzz: setup
	@tools/test fuzz

soak: build
	@tools/test soak

format:
	@tools/setup-packages test
	@tools/format

bench: build
	@tools/build-llama --peer
	@tools/bench $(ARGS)

clean:
	rm -rf build
	@if [ -n "$(ALL)" ]; then rm -rf .deps; fi
