"""What a broker does to tenants that share it, measured the same way for every broker.

`adapter` is what a broker must be able to do to be judged; `properties` are the questions; `adapters/` the brokers.
"""
