# What a release adds to the words of the Makefile.

CHECK += check-release

.PHONY: version release release-check check-release

version: $(VENV)/.build ## Write VERSION=x.y.z into every place that says which version this is
	@$(BIN)/python -m tools.release.versions $(VERSION)

release: $(VENV)/.system-release $(VENV)/.wheel setup-console setup-js ## Make dist/: everything that people install, of VERSION=x.y.z
	@$(BIN)/python -m tools.release.make $(VERSION)

release-check: $(VENV)/.system-release ## Install each part of dist/ by itself, and run what its README begins with (ONLY=go,java; deb, image and chart: as root)
	@$(BIN)/python -m tools.release.check $(ONLY)

check-release:
	@test -z "$$(gofmt -l tools/release)" || { gofmt -d tools/release; exit 1; }
	go -C tools/release/modulezip vet ./...
