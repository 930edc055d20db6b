"""The command line `fila`: speaks the wire contract and knows nothing of the server."""
