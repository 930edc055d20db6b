# What distributions of Fila add to the words of the Makefile.

.PHONY: wheel wheel-check

wheel: $(VENV)/.wheel setup-console ## Build dist/: sources and wheels of server, SDK, CLI and pipeline (PYTHON=)
	tools/wheel/build

wheel-check: ## Install dist/ in a bare Debian by the Containerfile's steps, and run it there (as root, with a network; SUITE=trixie: a newer Debian, with a wheel built there)
	$(BIN)/python -m tools.wheel.deployment
	$(BIN)/python -m tools.wheel.check $(SUITE)

$(VENV)/.wheel: $(VENV)/.build requirements/wheel.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/wheel.txt
	@touch $@
