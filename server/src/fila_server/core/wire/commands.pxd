"""The numbers of `fila_server/commands.py` for compiled code; a test holds the two together."""


cdef enum CommandKind:
    ENQUEUE = 1
    ENQUEUE_BATCH = 2
    ENQUEUE_STREAM = 3
    ENQUEUE_ATOMIC = 4
    ACK = 5
    NACK = 6
    ACK_BATCH = 7
    NACK_BATCH = 8
    EXTEND_LEASE = 9
    LEASE = 10
    CANCEL = 11
    CONSUME_OPEN = 12
    SESSION_OPEN = 13
    SESSION = 14
    WRITTEN = 15
    CONSUMER_CLOSE = 16
    LISTENED = 17
    CREATE_QUEUE = 32
    UPDATE_QUEUE = 33
    DELETE_QUEUE = 34
    GET_QUEUE = 35
    LIST_QUEUES = 36
    PURGE_QUEUE = 37
    PEEK_MESSAGES = 38
    GET_STATS = 39
    SET_CONFIG = 40
    GET_CONFIG = 41
    LIST_CONFIG = 42
    CREATE_CHANNEL = 43
    DELETE_CHANNEL = 44
    LIST_CHANNELS = 45
    SEEK_CHANNEL = 46
    PURGE_CHANNEL = 47
    SET_KEY_POLICY = 48
    EXPLAIN_KEY = 49
    REDRIVE_PAGE = 50
    REDRIVE_MOVE = 51
    DECIDE = 52
    METRICS = 53
    LIST_CONSUMERS = 54

cdef enum ReplyKind:
    REPLY = 0
    FRAME = 1
    DELIVERY = 2
    END = 3
    EVENT = 4
    LOST = 5
    NOTICE = 6

cdef enum Code:
    # google.rpc.Code, the ones Fila answers.
    OK = 0
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
