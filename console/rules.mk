# What the console adds to the words of the Makefile.

CONSOLE := console
CONSOLE_INSTALLED := $(CONSOLE)/node_modules/.installed

.PHONY: setup-console console check-console shots screens

SETUP += setup-console
CHECK += check-console

setup-console: $(CONSOLE_INSTALLED) ## Install the scripts, the font and the checks of the console

console: build setup-console ## Build, then serve the console on port 8080, of the broker on port 5555
	@exec $(BIN)/fila console

check-console: setup-console ## Types of the console's scripts
	npm run types --prefix $(CONSOLE) --silent

# The tests open its pages.
test-python: setup-console

shots: build setup-console $(VENV)/.dev ## Photograph every page of the console into docs/images
	python tests/console/shots.py docs/images

screens: build setup-console $(VENV)/.dev ## Photograph every page of the console in both themes at 390, 1280 and 1920 px into dist/screens
	python tests/console/screens.py dist/screens

$(CONSOLE_INSTALLED): $(CONSOLE)/package.json $(CONSOLE)/package-lock.json $(VENV)/.system-dev
	npm ci --prefix $(CONSOLE) --no-fund --no-audit --ignore-scripts --loglevel=error
	@touch $@
