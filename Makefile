# `make demo` and `make test` do all set-up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test format lint types contracts unit wheel bench sglang docs clean

demo: $(VENV)/ready
	@$(BIN)/slime-runbook demo; code=$$?; test $$code -eq 0 -o $$code -eq 1 -o $$code -eq 3  # 1: a cause is confirmed, as it must be

test: lint types contracts unit wheel

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) torch
	$(PIP) --editable '.[dev]'
	@touch $@

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/slime-runbook flows lint

types: $(VENV)/ready
	$(BIN)/mypy

contracts: $(VENV)/ready
	$(BIN)/lint-imports

unit: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

wheel: $(VENV)/ready
	sh tests/wheel.sh $(BIN)/python

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

sglang: $(VENV)/ready
	SLIME_RUNBOOK_SGLANG_CPU=1 $(BIN)/python -m pytest tests/sglang_cpu -m sglang

docs: $(VENV)/ready
	$(BIN)/python -m tests.generate_docs

clean:
	rm -rf $(VENV) build dist *.egg-info
