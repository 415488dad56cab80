# Every target makes what it needs: an environment in .venv from pinned versions, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

export DAGSTER_DISABLE_TELEMETRY := yes

.DEFAULT_GOAL := help
.PHONY: help demo ui test test-data test-slow lint type format check-data bench-engine bench-engine-llm bench-stages lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/base.done ## Build the demo benchmark in .saber and print its leaderboard
	$(BIN)/saber build

ui: $(VENV)/base.done ## Show the home in Dagster's UI on http://127.0.0.1:3000
	$(BIN)/saber ui

test: $(VENV)/torch.done ## Run the tests (except slow ones)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-data: $(VENV)/torch.done ## Run the tests on real data; fails where SABER_TEST_DATA is absent
	SABER_REQUIRE_TEST_DATA=1 $(BIN)/python -m pytest -m data

test-slow: $(VENV)/torch.done ## Run the tests that take minutes: kills, repeated builds
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev.done ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(VENV)/dev.done ## Check types
	$(BIN)/mypy

format: $(VENV)/dev.done ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check-data: $(VENV)/dev.done ## Check the shipped corpus, its answers and the shipped ontology
	$(BIN)/python -m pytest -n 2 tests/starter tests/unit/test_shipped_ontology.py
	$(BIN)/saber ontology check

bench-engine: $(VENV)/base.done ## Compare the parts of the embedded engine, alone and together
	$(BIN)/python -m benchmarks.engine_comparison

bench-engine-llm: $(VENV)/dev.done ## Compare the embedded engine with a small LLM (SABER_TEST_GGUF)
	$(BIN)/python -m benchmarks.engine_llm_agreement

bench-stages: $(VENV)/base.done ## Measure time, memory and calls of each stage
	$(BIN)/python -m benchmarks.stages

lock: $(VENV)/dev.done ## Pin the newest versions that pyproject.toml allows
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  --override requirements/overrides.txt --extra dev --extra models --extra deploy -c requirements/base.txt \
	  pyproject.toml -o requirements/dev.txt

clean: ## Remove the environment; homes such as .saber stay
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "saber_dagster needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.done: requirements/base.txt pyproject.toml | $(BIN)/python
	$(PIP) --no-deps -r requirements/base.txt
	$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/dev.done: requirements/dev.txt $(VENV)/base.done
	$(PIP) --no-deps -r requirements/dev.txt
	@touch $@

$(VENV)/torch.done: requirements/torch.txt $(VENV)/dev.done
	$(PIP) -r requirements/torch.txt -c requirements/dev.txt
	@touch $@
