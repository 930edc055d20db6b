"""The wire contract `fila.v1` in Python: generated from proto/ by `make gen`; the one copy in this tree."""
