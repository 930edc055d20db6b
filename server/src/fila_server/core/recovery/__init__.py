"""The core rebuilt from the store when it opens."""
