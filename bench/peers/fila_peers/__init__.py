"""Fila beside other brokers: the same loads, one after another, on one machine.

`install` gets the others without starting anything; `brokers` starts one on loopback in a directory of its own;
`cells` says what is measured; `measure` measures one cell; `results` keeps them, so that a run can be resumed;
`page` and `charts` show them. The loads themselves are `driver/`, a Go program with a client a broker.
"""
