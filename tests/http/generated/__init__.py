"""Clients that generators make of the OpenAPI document, in Python, TypeScript and Go, and what they are asked."""
