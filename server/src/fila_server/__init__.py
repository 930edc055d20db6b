"""The Fila server: a compiled core and edge, with Python around them. Start reading at main.py."""
