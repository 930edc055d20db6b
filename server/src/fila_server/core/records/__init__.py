"""How each thing stands on disk. Door: records."""
