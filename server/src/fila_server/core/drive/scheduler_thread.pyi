# The compiled core with its threads and the real clock, as main.py opens it and broker.py uses it.

from fila_server.core.drive.engine import CoreEngine

class Engine(CoreEngine):
    def start(self) -> None: ...
    def stop(self) -> None: ...
