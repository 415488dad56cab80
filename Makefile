# Every target makes what it needs: an environment in .venv from pinned versions, once.
PYTHON ?= python3
VENV := .venv
VLLM := .venv-vllm
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

export DAGSTER_DISABLE_TELEMETRY := yes

.DEFAULT_GOAL := help
.PHONY: help demo ui test test-data test-slow test-vllm lint type format check-data bench-engine bench-engine-llm bench-llm bench-real-signals bench-short-triples bench-signals bench-stages demo-llm lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/base.done ## Build the demo benchmark in .saber and print its leaderboard
	$(BIN)/saber build

ui: $(VENV)/base.done ## Show the home in Dagster's UI on http://127.0.0.1:3000
	$(BIN)/saber ui

test: $(VENV)/torch.done ## Run the tests (except slow ones)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

test-data: $(VENV)/torch.done ## Run the tests on real data; fails where SABER_TEST_DATA is absent
	SABER_REQUIRE_TEST_DATA=1 $(BIN)/python -m pytest -m data

test-slow: $(VENV)/torch.done ## Run the tests that take minutes: kills, repeated builds
	$(BIN)/python -m pytest -m slow

test-vllm: $(VLLM)/model.done ## Run the tests with a real vLLM on CPU, in an environment of its own
	SABER_TEST_VLLM_MODEL=$(VLLM)/smollm2 $(VLLM)/bin/python -m pytest tests/vllm --timeout 1200

lint: $(VENV)/dev.done ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd prompts && sha256sum --check --quiet SHA256SUMS || \
	  { echo "A prompt has changed: raise its version, then saber prompts hash > prompts/SHA256SUMS"; exit 1; }

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

bench-llm: $(VENV)/base.done ## Measure throughput, memory and size of engines and ledger
	$(BIN)/python -m benchmarks.llm

demo-llm: $(VENV)/dev.done ## Let a small LLM judge a small benchmark (SABER_TEST_GGUF), about 45 minutes
	$(BIN)/python -m benchmarks.demo_llm

bench-short-triples: $(VENV)/dev.done ## Let a small LLM judge 20 short triples (SABER_TEST_GGUF), about 8 minutes
	$(BIN)/python -m benchmarks.short_triples

bench-signals: $(VENV)/base.done ## Measure both signals of all pairs of 283,000 synthetic problems
	$(BIN)/python -m benchmarks.signals

bench-real-signals: $(VENV)/base.done ## Materialize signals to candidates of real problems (SABER_TEST_DATA)
	$(BIN)/python -m benchmarks.real_signals

bench-stages: $(VENV)/base.done ## Measure time, memory and calls of each stage
	$(BIN)/python -m benchmarks.stages

lock: $(VENV)/dev.done ## Pin the newest versions that pyproject.toml allows
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  --override requirements/overrides.txt --extra dev --extra models --extra deploy -c requirements/base.txt \
	  pyproject.toml -o requirements/dev.txt

clean: ## Remove the environments; homes such as .saber stay
	rm -rf $(VENV) $(VLLM)

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

# vLLM pins torch and numba. uv alone can leave its audio and video parts out, and pip alone finds a CPU
# build of torch where one is at hand.
$(VLLM)/packages.done: tests/vllm/requirements.txt tests/vllm/overrides.txt pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check uv -r requirements/torch.txt
	$(VLLM)/bin/uv pip install --quiet --python $(VLLM)/bin/python \
	  --override tests/vllm/overrides.txt -r tests/vllm/requirements.txt --editable .
	@touch $@

$(VLLM)/model.done: tests/vllm/convert_model.py $(VLLM)/packages.done
	$(VLLM)/bin/python tests/vllm/convert_model.py $(VLLM)/smollm2
	@touch $@
