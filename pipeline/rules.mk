# What the pipeline on Spark adds to the words of the Makefile. It has an environment of its own: PySpark with its
# jars is nearly a gigabyte, which nobody who works on the broker has to install.

PIPELINE_VENV := pipeline/.venv
PIPELINE_BIN := $(PIPELINE_VENV)/bin
PIPELINE_SOURCES := $(shell find pipeline/src -name '*.py') pipeline/pyproject.toml pipeline/setup.py

.PHONY: pipeline-env pipeline-core pipeline test-pipeline check-pipeline soak-pipeline lock-pipeline

TEST += test-pipeline
CHECK += check-pipeline

pipeline-env: $(PIPELINE_BIN)/fila-pipeline ## Make pipeline/.venv with the command fila-pipeline, and Java where missing

# Against a real broker, so the core is built too.
test-pipeline: build $(PIPELINE_VENV)/.core ## Run the tests of the Spark source and of the jobs
	cd pipeline && FILA_COSTS=$(CURDIR)/build/costs/pipeline.jsonl .venv/bin/python -m pytest $(PYTEST_ARGS)

# Where slices are named, only these.
soak: $(if $(strip $(ONLY)),,soak-pipeline)
soak-pipeline: build $(PIPELINE_VENV)/.core
	cd pipeline && FILA_SOAK=1 .venv/bin/python -m pytest --timeout 0

check-pipeline: $(PIPELINE_BIN)/fila-pipeline $(VENV)/.dev
	cd pipeline && .venv/bin/python -m mypy --config-file pyproject.toml src
	cd pipeline && PYTHONPATH=src lint-imports

lock: lock-pipeline
lock-pipeline: $(VENV)/.dev
	$(COMPILE) pipeline/pyproject.toml requirements/pipeline.in -o requirements/pipeline.txt
	$(COMPILE) requirements/history.in -o requirements/history.txt

$(PIPELINE_VENV)/.installed: requirements/pipeline.txt tools/system-packages
	@PYTHON=$(PYTHON) tools/system-packages pipeline
	@test -x $(PIPELINE_BIN)/python || $(PYTHON) -m venv $(PIPELINE_VENV)
	$(PIPELINE_BIN)/python $(PIP_FOR_TESTS) -r requirements/pipeline.txt
	@touch $@

$(PIPELINE_BIN)/fila-pipeline: $(PIPELINE_VENV)/.installed $(PIPELINE_SOURCES) $(wildcard sdks/python/src/fila/v1/*_pb2.py)
	$(PIPELINE_BIN)/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall ./pipeline
	@touch $@

pipeline-core: build $(PIPELINE_VENV)/.core ## Put the broker's core beside it, for fila-pipeline backtest

# As this checkout has built it.
$(PIPELINE_VENV)/.core: $(PIPELINE_BIN)/fila-pipeline
	@$(PIPELINE_BIN)/python -c "import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path('purelib'), 'fila_server.pth').write_text('$(CURDIR)/server/src\n$(CURDIR)/sdks/python/src\n')"
	@touch $@

# What a broker records with; nothing else of what tests take is needed here.
$(VENV)/.history: $(VENV)/.build requirements/history.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/history.txt
	@touch $@

# From nothing to the reports: a broker records two minutes of work, then every job, the backtest and another policy.
# TRACE=FILE.csv: a real trace of requests in place of a made-up one.
pipeline: build $(VENV)/.history pipeline-env $(PIPELINE_VENV)/.core ## Record a broker at work, and make every report of it, in build/pipeline
	rm -rf build/pipeline
	$(BIN)/python bench/record.py --history build/pipeline/history $(if $(TRACE),--trace $(TRACE))
	$(PIPELINE_BIN)/fila-pipeline report --all --window 2 --history build/pipeline/history --out build/pipeline/report
	$(PIPELINE_BIN)/fila-pipeline backtest --history build/pipeline/history --out build/pipeline/report/backtest \
		--policy bench/record-policy.toml
