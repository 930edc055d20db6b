"""For the tests of tests/ and of sdks/conformance: what each costs is measured."""

pytest_plugins = ["tests.costs"]
