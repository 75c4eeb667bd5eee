# Two commands do everything: `make demo` and `make test`. Both set up what they need first.
PYTHON ?= python3
VENV   := .venv/bin

.PHONY: demo test test-all check check-surface generate bench build setup clients clients-more clients-numba numba-suite wheel clean

demo: build clients
	@$(VENV)/aliquot demo

test: setup build clients
	@tools/run_tests fast

test-all: setup build clients clients-more clients-numba
	@tools/run_tests all

check: setup
	@tools/check

generate: setup build
	@$(VENV)/python tools/generate_abi.py
	@$(VENV)/python tools/generate_reasons.py
	@$(VENV)/python tools/generate_coverage.py
	@$(VENV)/python tools/generate_softgpu_facts.py

# A header (cuda.h, nvml.h) or a folder of them, against the tables of the governor's functions.
check-surface: setup
	@test -n "$(HEADER)" || { echo "usage: make check-surface HEADER=path/to/cuda.h"; exit 2; }
	@$(VENV)/python tools/check_surface.py "$(HEADER)"

bench: setup build clients
	@test -n "$(NAME)" || { echo "usage: make bench NAME=$$(ls bench | sed -n 's/\.py$$//p' | grep -Ev '^(row|compute_.*)$$' | paste -sd'|')"; exit 2; }
	@$(VENV)/python bench/$(NAME).py

# numba-cuda's own tests, some 2,050, against the list of what they gave: tests/numba_suite/expected.tsv.
numba-suite: setup build clients-numba
	@$(VENV)/python tools/numba_suite.py $(ARGS)

# The five below do nothing, and write nothing, when they are up to date.
build:
	@tools/setup build
setup:
	@tools/setup dev
clients:
	@tools/setup clients
clients-more:
	@tools/setup clients-more
clients-numba:
	@tools/setup clients-numba

wheel:
	@$(PYTHON) -m pip wheel --no-deps -w dist .

clean:
	rm -rf build dist src/aliquot/_native .venv .clients .clients-more .clients-numba
