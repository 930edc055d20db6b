"""The Fila server: Python edges around a compiled core. Start reading at main.py."""
