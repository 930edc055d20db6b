"""A Prometheus that speaks `/api/v1/query_range` and answers each query with a line, or with what it is told to say."""

from __future__ import annotations

import contextlib
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class FakePrometheus(ThreadingHTTPServer):
    """It remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.queries: list[str] = []
        self.status = 200
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self.wait_s = 0.0
        self.sources = 1
        """So many brokers it has numbers of."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakePrometheus

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.server.queries.append(asked["query"][0])
        time.sleep(self.server.wait_s)
        begin, end, step = (int(asked[name][0]) for name in ("start", "end", "step"))
        sources = self.server.sources if "count without" in asked["query"][0] else None
        values = [[at, str(at % 97 if sources is None else sources)] for at in range(begin, end + 1, step)]
        metric = {"fila_fairness_key": "acme"} if "topk" in asked["query"][0] else {}
        told = {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}
        body = self.server.body
        if body is None:
            body = json.dumps({"status": "success", "data": told}).encode()
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""
