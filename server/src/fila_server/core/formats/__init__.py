"""How each thing stands on disk. Begin at records."""
