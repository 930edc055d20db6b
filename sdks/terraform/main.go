// The provider of Fila for Terraform and OpenTofu: docs/deploy/terraform.md says how it is used.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/fila-mq/terraform-provider-fila/internal/provider"
)

func main() {
	// The address counts for a debugger only: a configuration says under which one it looks for the provider.
	serving := providerserver.ServeOpts{Address: "localhost/fila-mq/fila"}
	if err := providerserver.Serve(context.Background(), provider.New, serving); err != nil {
		log.Fatal(err)
	}
}
