# The JavaScript SDK's part of the Makefile's words.

JS := sdks/js
JS_INSTALLED := $(JS)/node_modules/.installed
JS_BUILT := $(JS)/dist/cjs/package.json
JS_SOURCES := $(shell find $(JS)/src -name '*.ts' -not -path '*/gen/google/*') $(wildcard $(JS)/tsconfig*.json $(JS)/scripts/*.mjs)

SETUP += setup-js
TEST += test-js
CHECK += check-js
GENERATED += $(JS)/src/gen/fila

.PHONY: setup-js build-js test-js check-js

setup-js: $(JS_INSTALLED)

build-js: $(JS_BUILT) ## Build the JavaScript SDK into sdks/js/dist

test-js: build $(JS_BUILT) ## Run the tests of the JavaScript SDK
	npm test --prefix $(JS) --silent

check-js: $(JS_BUILT) ## Formats, lint, types and API docs of the JavaScript SDK
	npm run lint --prefix $(JS) --silent
	npm run docs --prefix $(JS) --silent

# The generator of the stubs is one of its packages.
gen gen-check: $(JS_INSTALLED)

$(JS_INSTALLED): $(JS)/package.json $(JS)/package-lock.json $(VENV)/.system-dev
	npm ci --prefix $(JS) --no-fund --no-audit --ignore-scripts --loglevel=error
	@touch $@

$(JS_BUILT): $(JS_INSTALLED) $(JS_SOURCES)
	npm run build --prefix $(JS) --silent
