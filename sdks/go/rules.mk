# What the Go SDK adds to the words of the Makefile.

GENERATED += sdks/go/v1
