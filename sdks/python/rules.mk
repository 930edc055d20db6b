# What the Python SDK adds to the words of the Makefile.

TEST += test-sdk-oldest

.PHONY: test-sdk-oldest

test-sdk-oldest: build $(VENV)/oldest/.installed ## Run the Python SDK's tests with the oldest libraries it allows
	PYTHONPATH=sdks/python/src:server/src:cli/src $(VENV)/oldest/bin/python -m pytest -p no:cacheprovider tests/sdk

# The compiler of the stubs has libraries of its own, older than the broker's.
gen gen-check: $(VENV)/stubs/.installed

$(VENV)/stubs/.installed $(VENV)/oldest/.installed: $(VENV)/%/.installed: requirements/%.txt $(VENV)/.system-dev
	$(PYTHON) -m venv --clear $(VENV)/$*
	$(VENV)/$*/bin/python $(PIP_FOR_TESTS) -r $<
	@touch $@
