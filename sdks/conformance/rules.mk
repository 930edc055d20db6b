# The conformance suite: every scenario of sdks/conformance/scenarios through every SDK's driver.

.PHONY: test-conformance

TEST += test-conformance

# Where no language is chosen, make builds the drivers: others wait for the same targets. Scenarios play beside the
# patterns' programs, since both wait more than they compute.
test-conformance: build $(VENV)/.dev $(if $(LANGUAGES),,build-js build-go build-java) ## Play the conformance scenarios in every language (LANGUAGES=go,js SCENARIOS=dedup for some)
	FILA_COSTS=$(CURDIR)/build/costs/conformance.jsonl LANGUAGES=$(LANGUAGES) SCENARIOS="$(SCENARIOS)" \
		$(PYTEST) -n 2 --dist loadfile $(PYTEST_ARGS) sdks/conformance
