"""The history: what the core recorded, as Parquet files that a reader may rely on.

    core/history, on the scheduler thread ──blocks──► recorder.py   a thread of lowest priority
                                                          ├─ columns.py   a block's memory as Arrow's, not copied
                                                          ├─ files.py     open files, closed ones, the list of them
                                                          ├─ signing.py   who made the list
                                                          └─ upkeep.py    what a killed run left, what is too old

Read back by replaying.py, which follows a recording from its beginning, and checkpoints.py, which makes later ones.

What is written is described in docs/history.md. pyarrow and cryptography are imported here and nowhere else in the
server.
"""
