# The conformance suite: every scenario of sdks/conformance/scenarios through every SDK's driver.

.PHONY: test-conformance

TEST += test-conformance

test-conformance: build $(VENV)/.dev ## Play the conformance scenarios in every language (LANGUAGES=go,js SCENARIOS=dedup for some)
	FILA_COSTS=$(CURDIR)/build/costs/conformance.jsonl LANGUAGES=$(LANGUAGES) SCENARIOS="$(SCENARIOS)" \
		$(PYTEST) $(PYTEST_ARGS) sdks/conformance
