"""Load for Fila, lean enough that two cores measure the broker and not the generator.

run.py ── scenarios/* ──► server.py     one fila-server, temporary data directory
                     ├──► load.py       spawns producers and consumers, samples their counters
                     │      ├ producer.py   EnqueueStream, a window of frames under way
                     │      └ consumer.py   ConsumeSession, acks coalesced
                     │           └ frames.py, scan.pyx   bytes out, bytes in, no message objects
                     └──► report.py     table, JSON, markdown
"""
