# What the documentation's site adds to the words of the Makefile.

.PHONY: site site-check

SITE := $(VENV)/site

site: $(SITE)/.installed ## Make dist/site: the documentation with a search, as plain files
	@$(SITE)/bin/python -m tools.site.make

site-check: site $(VENV)/.dev ## Walk every link of dist/site, and fail on one that leads nowhere or loads from another host
	@$(BIN)/python -m tools.site.check

$(SITE)/.installed: requirements/site.txt
	$(PYTHON) -m venv --clear $(SITE)
	$(SITE)/bin/python -m pip install --quiet --require-hashes -r requirements/site.txt
	@touch $@
