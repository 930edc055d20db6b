"""Property tests of the core count examples, not milliseconds: on a busy machine a deadline fails what is right."""

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
