"""One module a noun or verb of the command line; `main.py` imports each when it is named."""
