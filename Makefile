# The main commands are `make run` and `make test`. CONTRIBUTING.md explains the rest.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export CCACHE_NOHASHDIR := 1
export CCACHE_BASEDIR := $(CURDIR)

.PHONY: help run test build image packages setup format docs bench fuzz update-golden clean

help: ## show this text
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 24

run: ## install missing packages, build what the demo needs, start the whole stack on loopback; Ctrl-C stops it
	@scripts/setup run
	@scripts/build release $(addprefix publish_,ceems_exporter ceems_api_server cacct)
	@exec scripts/run/ceems-run $(RUN_ARGS)

test: ## install missing packages and run the tests; TEST_ARGS=STAGE runs one stage
	@scripts/setup test
	@scripts/test $(TEST_ARGS)

build: ## build all programs into build/bin
	@scripts/setup run
	@scripts/build release

image: ## make the container image ceems-demo with buildah, podman or docker: all that `make run` starts
	@scripts/setup run
	@scripts/build release $(addprefix publish_,ceems_exporter ceems_api_server cacct)
	@packaging/containers/demo

packages: ## make .deb, .rpm and a tarball in build/packages/out; ARCH=arm64 for arm64 (see docs/packages.md)
	@scripts/package-programs $(or $(ARCH),amd64)
	@packaging/build --arch $(or $(ARCH),amd64)
	@ls -sh build/packages/out$(if $(filter arm64,$(ARCH)),-arm64)

format: ## format all sources with clang-format 19
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

docs: ## build the documentation site into build/site
	@scripts/setup test
	@scripts/docs

bench: ## build and run the benchmarks of bench/
	@scripts/setup test
	@scripts/build bench
	@bench/scrape.py --bin build/bench/bin --live --write bench/RESULTS.md
	@bench/scrape.py --bin build/bench/bin --write bench/RESULTS.md

fuzz: ## run each fuzz target for FUZZ_SECONDS (default: 60)
	@scripts/setup test
	@scripts/fuzz $${FUZZ_SECONDS:-60}

update-golden: ## rewrite tests/golden with the current output of the programs
	@scripts/build dev
	@tests/golden/exporter_golden.py --bin build/dev/bin/ceems_exporter --update

clean: ## remove all build output
	@rm -rf build web/node_modules web/dist tests/e2e/node_modules
