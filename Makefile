# Two commands do everything: `make demo` and `make test`. Both install into .venv first, from a clean checkout.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check clean

demo: $(VENV)/.installed
	$(BIN)/vivarig demo

test: $(VENV)/.installed-test check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[test]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache
