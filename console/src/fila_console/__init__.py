"""The console: pages in a browser that show what the broker knows, and let an operator act on it.

A process of its own, started by `fila console`, that reaches brokers over gRPC as any client does. A page is rendered
whole by the server and then kept current by a stream of changes. Start reading at `program.py`; `routes.py` names
every address, `watches.py` says how many browsers share one question to the broker.
"""
