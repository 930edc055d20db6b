"""The HTTP gateway of Fila, `fila http`: JSON over HTTP in, gRPC to a broker out, in a process of its own.

A flood of requests must not stall the broker, so the gateway stands beside it: it knows the wire and nothing of the
server, has no key of its own, and judges no right. A request goes through these modules:

    protocol.py     one connection: its head in time and within a bound
    guards.py       what is refused before anything is read: a foreign Host or Origin, a target with two readings
    route.py        what a route is; v1/routes.py has the table, made of proto/http.yaml
    keys.py         whether the broker knows the caller's key: what others send is not read
    intakes.py      what of a sender's headers a queue's messages keep, where a body is stored as it is
    body.py         the body, within its bounds and in time
    binding.py      path, query, headers and body become the request's message; proto_json.py, judged_json.py
    written_json.py an answer's message becomes JSON
    feedback.py     Fila-Limited, what a provider refused
    translators.py  the same in a process beside the loop, where the body is not small; translation.py
    upstream.py     the call to the broker, in the name of the caller's key
    calls.py        answers in one piece; streams.py, events.py: answers as server-sent events
    problems.py     every way to say no; refusals.py: which are told late
    server.py       all of it together
"""
