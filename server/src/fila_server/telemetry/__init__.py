"""What the broker tells about itself while it runs: metrics over OTLP and for Prometheus, trace context on messages.

    core/admin/metrics.pyx ──METRICS──► snapshot.py ──► series.py ──► prometheus.py   the page at [metrics] listen_addr
      counts, always                                │    ▲  └─► otlp.py         to [telemetry] otlp_endpoint
                                        catalog.py ─┘    └─ hooks' counters

Nothing here runs per message. A number is counted where it happens, as a plain increment, and read when somebody
looks. catalog.py names every metric; docs/telemetry.md and the Grafana dashboard are checked against it.
"""
