# Everything runs in virtual environments of its own; nothing else is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check test-articles docs bench messages
demo: .venv/ready
	$(BIN)/python -m equivalence run

# The fast lane: all but the tests that are marked slow.
test: .venv/ready
	$(BIN)/python -m pytest

# Everything, on each supported Python there is, by name or from pyenv; the last line is
# the count of the last of them, which has the most made-up conversations.
VERSIONS ?= 3.13 3.12 3.11
HERE = $(foreach version,$(VERSIONS),$(if $(call python,$(version)),$(version)))
python = $(shell for one in python$(1) $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$(1).*/bin/python; \
  do $$one -c 'import venv, ensurepip' 2>/dev/null && echo $$one && break; done)
test-all:
	@$(MAKE) --no-print-directory test-on VERSIONS="$(HERE)"

.PHONY: test-on
test-on: $(VERSIONS:%=.venv-%/ready)
	@-$(MAKE) --no-print-directory .venv-npm/mermaid.min.js
	@echo "Python here: $(or $(VERSIONS),none of the supported versions)"
	@test -n "$(VERSIONS)"
	@for version in $(VERSIONS); do \
	  echo "== everything on Python $$version"; \
	  examples=200; [ $$version != $(lastword $(VERSIONS)) ] || examples=800; \
	  EXAMPLES=$${EXAMPLES:-$$examples} \
	    .venv-$$version/bin/python -m pytest -m "slow or not slow" || exit 1; \
	done

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The same tests on the versions the articles were written with.
test-articles: .venv-articles/ready
	.venv-articles/bin/python -m pytest

.venv/ready: requirements.txt
.venv-articles/ready: requirements-articles.txt
.venv/ready .venv-articles/ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(call environment,$(PYTHON),$<)

.venv-3.%/ready: requirements.txt
	$(call environment,$(call python,3.$*),$<)

define environment
$(1) -m venv $(@D)
$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(2)
@touch $@
endef

# Every goal beside its figure, beside others that do the same; no pass or fail.
# `make bench LONG=1` compares 100,000 runs with 100,000 too.
bench: .venv/ready
	@-$(MAKE) --no-print-directory .venv-bench/ready
	$(BIN)/python -m benchmarks $(if $(LONG),--long)

# The peers, in an environment of their own, on the newest Python there is.
.venv-bench/ready: benchmarks/requirements-peers.txt
	$(call environment,$(or $(firstword $(foreach v,$(VERSIONS),$(call python,$(v)))),$(PYTHON)),$<)

# What draws the pages' diagrams, for a test in the slow lane; exactly this version.
MERMAID := 11.17.0
.venv-npm/mermaid.min.js: Makefile
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent mermaid@$(MERMAID)
	tar -xzOf $(@D)/mermaid-$(MERMAID).tgz package/dist/mermaid.min.js > $@
	rm $(@D)/mermaid-$(MERMAID).tgz

# Bring code, output and numbers in README and docs up to date with the code.
PAGES := README.md README.zh-CN.md $(wildcard docs/*.md docs/zh/*.md)
docs: .venv/ready
	cd docs && ../$(BIN)/python -m cogapp -I . -U -r $(addprefix ../,$(PAGES))

# Collect the sentences that are printed for people; translate what is new in the .po,
# then run it again: it compiles what there is.
messages: .venv/ready
	$(BIN)/pybabel -q extract -o .venv/messages.pot
	$(BIN)/pybabel -q update -i .venv/messages.pot
	$(BIN)/pybabel -q compile
