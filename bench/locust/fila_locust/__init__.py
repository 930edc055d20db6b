"""What the load tests of `bench/locust/scenarios` are put together from.

A scenario says which queue it needs, who sends, who takes, and how their number changes over time. Everything it
composes lives here: users for gRPC and Redis, shapes, the account of who was due what, and the thresholds that make
a run fail.
"""
