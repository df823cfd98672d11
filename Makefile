# Everything runs in a virtual environment of its own; nothing else is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check test-articles docs
demo: .venv/ready
	$(BIN)/python -m equivalence run

test: .venv/ready
	$(BIN)/python -m pytest

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The same tests on the versions the articles were written with.
test-articles: .venv-articles/ready
	.venv-articles/bin/python -m pytest

.venv/ready: requirements.txt
.venv-articles/ready: requirements-articles.txt
.venv/ready .venv-articles/ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Bring code, output and numbers in README and docs up to date with the code.
PAGES := README.md $(wildcard docs/*.md)
docs: .venv/ready
	cd docs && ../$(BIN)/python -m cogapp -I . -U -r $(addprefix ../,$(PAGES))
