# The commands one needs every day; what they mean is in CMakePresets.json.
#
#   make PRESET=dev build      another preset: release (default), dev, asan
#   make V=1 ...               show every command
#   make ONLY="tidy tsan" check-all   some of the long checks

PRESET ?= release
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
V      ?= 0

# The release preset builds where people look first.
BUILD := build$(if $(filter-out release,$(PRESET)),-$(PRESET))
CONFIGURED := $(BUILD)/build.ninja
# Configured when what the tests need was there.
FOR_TESTS := $(BUILD)/configured_for_tests
# One moving line on a terminal, silence in a log, everything on request.
NINJA := cmake --build --preset $(PRESET) -j $(JOBS)
ifneq ($(V),0)
SHOW := -- --verbose
else ifeq ($(shell test -t 2 && echo yes),yes)
SHOW := | scripts/build_progress
else
SHOW := -- --quiet
endif
SHELL := bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := build
.PHONY: build installed run test check-all fuzz dist package wheel wheel-compiler wheel-compiler-built docs install format \
  clean help setup setup_for_tests

build: $(CONFIGURED) ## the kiln command, at build/kiln
	@$(NINJA) --target kiln_cli $(SHOW)

# The command, and every library that is installed.
installed: $(CONFIGURED)
	@$(NINJA) --target kiln_cli kiln_c $(SHOW)

run: build ## build, then a product of two 1024 x 1024 matrices
	@$(BUILD)/kiln gemm 1024 1024 1024

test: $(FOR_TESTS) ## build everything and run every test
	@$(NINJA) $(SHOW)
	@if ctest --preset $(PRESET) -j $(JOBS); then \
	  echo "kiln: all tests passed"; \
	else \
	  echo "kiln: tests failed; one alone: ctest --preset $(PRESET) -R NAME"; \
	  exit 1; \
	fi

check-all: ## the long checks: build time, random tests, clang, sanitizers, aarch64
	@JOBS=$(JOBS) scripts/check_all $(ONLY)

fuzz: ## a fuzz target for a while: make fuzz TARGET=ptx SECONDS=60 (or TARGET=all)
	@JOBS=$(JOBS) scripts/fuzz $(or $(TARGET),all) $(or $(SECONDS),20)

dist: ## one self-contained executable, at dist/kiln
	@$(MAKE) --no-print-directory PRESET=dist build
	@scripts/dist build-dist/kiln dist/kiln

package: dist ## a .deb and the self-contained executable, in dist/
	@$(MAKE) --no-print-directory PRESET=package installed
	@scripts/package build-package dist

wheel: $(CONFIGURED) ## the Python package, in dist/
	@$(NINJA) --target wheel $(SHOW)
	@scripts/wheel kiln-gpu $(BUILD) dist

wheel-compiler: ## the Python package of the compiler, in dist/
	@$(MAKE) --no-print-directory PRESET=package wheel-compiler-built
	@scripts/wheel kiln-gpu-compiler build-package dist

wheel-compiler-built: $(CONFIGURED)
	@$(NINJA) --target wheel_compiler $(SHOW)

docs: build ## the pages and the reference as a site, at build/docs/index.html
	@scripts/docs $(BUILD)/kiln $(BUILD)/docs
	@echo "kiln: $(BUILD)/docs/index.html"

install: installed ## the command, the libraries and the headers, under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX) >/dev/null
	@echo "kiln: installed under $(DESTDIR)$(PREFIX)"

format: ## the C++ sources, in place
	@scripts/format

clean: ## remove what the build wrote
	@rm -rf build build-* dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1 \t/p' Makefile | expand -t 12

setup:
	@scripts/setup

setup_for_tests:
	@scripts/setup test

# Ninja configures again by itself when a CMakeLists.txt changes; here only the
# first time, when the presets do, and when what the tests need came later.
define configure
@echo "kiln: configuring $(BUILD); the first build takes $$(scripts/setup --estimate)"
@cmake --preset $(PRESET) >/dev/null || { scripts/setup --needs; exit 3; }
@touch $(CONFIGURED) $@
endef

$(CONFIGURED): CMakePresets.json | setup
	$(configure)

$(FOR_TESTS): CMakePresets.json | setup_for_tests
	$(configure)
