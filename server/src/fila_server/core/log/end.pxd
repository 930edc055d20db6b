"""A log as Python holds it: of a model, or of Kafka's protocol. Who is given one calls its four functions."""

from fila_server.core.log.log cimport Log

cdef class LogEnd:
    cdef Log* log
