# The JavaScript SDK's part of the Makefile's words.

JS := sdks/js
JS_INSTALLED := $(JS)/node_modules/.installed

SETUP += setup-js
GENERATED += $(JS)/src/gen/fila

.PHONY: setup-js

setup-js: $(JS_INSTALLED)

# The generator of the stubs is one of its packages.
gen gen-check: $(JS_INSTALLED)

$(JS_INSTALLED): $(JS)/package.json $(JS)/package-lock.json $(VENV)/.system-dev
	npm ci --prefix $(JS) --no-fund --no-audit --ignore-scripts --loglevel=error
	@touch $@
