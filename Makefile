# Two commands: `make run` and `make test`. The rest is in CONTRIBUTING.md.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export CCACHE_NOHASHDIR := 1
export CCACHE_BASEDIR := $(CURDIR)

.PHONY: help run test build setup format bench fuzz update-golden clean

help: ## this text
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 24

run: ## install what is missing, build, start the whole stack on loopback; Ctrl-C stops it
	@scripts/setup run
	@scripts/build release
	@exec scripts/run/ceems-run $(RUN_ARGS)

test: ## install what is missing and run every test
	@scripts/setup test
	@scripts/test $(TEST_ARGS)

build: ## build the programs into build/bin
	@scripts/setup run
	@scripts/build release

format: ## clang-format 19 over all sources
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

bench: ## build and run the benchmarks of bench/
	@scripts/setup test
	@scripts/build bench
	@bench/scrape.py --bin build/bench/bin --live --write bench/RESULTS.md
	@bench/scrape.py --bin build/bench/bin --write bench/RESULTS.md

fuzz: ## run each fuzz target for FUZZ_SECONDS (default 60)
	@scripts/setup test
	@scripts/fuzz $${FUZZ_SECONDS:-60}

update-golden: ## rewrite tests/golden from what the programs print now
	@scripts/build dev
	@tests/golden/exporter_golden.py --bin-dir build/dev/bin --update

clean: ## remove everything that was built
	@rm -rf build web/node_modules web/dist tests/e2e/node_modules
