"""Inline commands: a line that a person types into telnet or nc, split into words.

    set "my queue"  ->  set, my queue        "\\x00\\n" and \\" inside double quotes,
                                             only \\' inside single ones, as in Redis
"""

from libc.stddef cimport size_t

from fila_server.core.structures.buffer cimport Buffer

cdef struct Word:
    const char* at                  # behind the last byte looked at
    const char* end
    size_t   began                  # in `text`, where its bytes are put

# The next word of the line, unquoted, behind `text`. 1: there is one; 0: the line is over; -1: a quote was
# opened and not closed, or something touches a closing quote.
cdef int word_next(Word* word, Buffer* text) noexcept nogil
