"""Plays the scenarios of `sdks/conformance` against a real broker, through one driver a language."""
