from libc.stdint cimport uint8_t

from fila_server.core.structures.buffer cimport put_bytes, put_u8


cdef inline bint _is_space(char c) noexcept nogil:
    return c == c" " or 9 <= c <= 13


cdef inline int _hex(char c) noexcept nogil:
    if c"0" <= c <= c"9":
        return c - c"0"
    c |= 0x20
    return c - c"a" + 10 if c"a" <= c <= c"f" else -1


cdef void _put_escaped(Word* word, Buffer* text) noexcept nogil:
    """What a backslash inside double quotes stands for; `word.at` is behind it."""
    cdef char c = word.at[0]
    word.at += 1
    if c == c"x" and word.end - word.at >= 2 and _hex(word.at[0]) >= 0 and _hex(word.at[1]) >= 0:
        put_u8(text, <uint8_t> (_hex(word.at[0]) << 4 | _hex(word.at[1])))
        word.at += 2
        return
    if c == c"n":
        c = c"\n"
    elif c == c"r":
        c = c"\r"
    elif c == c"t":
        c = c"\t"
    elif c == c"b":
        c = c"\b"
    elif c == c"a":
        c = c"\a"
    put_u8(text, <uint8_t> c)


cdef bint _quoted(Word* word, Buffer* text) noexcept nogil:
    """From behind the opening quote to behind the closing one."""
    cdef char quote = (word.at - 1)[0]
    cdef char c
    while word.at < word.end:
        c = word.at[0]
        word.at += 1
        if c == quote:
            return True
        if c != c"\\":
            put_u8(text, <uint8_t> c)
        elif word.at == word.end:
            return False
        elif quote == c'"':
            _put_escaped(word, text)
        else:
            if word.at[0] != quote:
                put_u8(text, <uint8_t> c)
            put_u8(text, <uint8_t> word.at[0])
            word.at += 1
    return False


cdef int word_next(Word* word, Buffer* text) noexcept nogil:
    cdef const char* began
    while word.at < word.end and _is_space(word.at[0]):
        word.at += 1
    if word.at == word.end:
        return 0
    word.began = text.length
    if word.at[0] == c'"' or word.at[0] == c"'":
        word.at += 1
        if not _quoted(word, text):
            return -1
        return 1 if word.at == word.end or _is_space(word.at[0]) else -1
    began = word.at
    while word.at < word.end and not _is_space(word.at[0]):
        if word.at[0] == c'"' or word.at[0] == c"'":
            return -1
        word.at += 1
    put_bytes(text, began, word.at - began)
    return 1
