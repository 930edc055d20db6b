# What the Terraform provider adds to the words of the Makefile.

.PHONY: test-terraform check-terraform

TEST += test-terraform
CHECK += check-terraform

test-terraform: ## Run the unit tests of the Terraform provider; make release-check ONLY=terraform runs it whole
	go -C sdks/terraform test ./...

check-terraform:
	@test -z "$$(gofmt -l sdks/terraform)" || { gofmt -d sdks/terraform; exit 1; }
	go -C sdks/terraform vet ./...
	@cd sdks/terraform && go mod tidy -diff
