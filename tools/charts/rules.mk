# What the Helm chart adds to the words of the Makefile.

CHECK += check-charts

.PHONY: check-charts

check-charts:
	@test -z "$$(gofmt -l tools/charts)" || { gofmt -d tools/charts; exit 1; }
