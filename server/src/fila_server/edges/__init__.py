"""Protocols in, broker and operations out. A protocol is one room here and knows nothing of the others."""
