"""What an I/O thread has: its connections, their calls, the answers on their way out. The map; no function.

    IoThread ──► Connection ──► Call ──► Parcel, Parcel, ...        what the client is to get, in order
        │             ├──► Redis ──► Reply, Reply, ...              the same, of a Redis client
        │             └──► Mark, Mark, ...                          parcels and replies in the out buffer,
        │                                                           until the socket has them
        └──► Slot[]   token ──► Call, Parcel, Reply or Connection   whose an answer of the core is

A connection belongs to one thread for life, and nothing of this is locked: only the outbox orders come
through, the bridge to Python and the numbers of `Common` are touched by several threads, each in its own way.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.requests.rights cimport RightsTable
from fila_server.core.state.opaque cimport Outbox
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.structures.maps cimport Text, TextMap
from fila_server.core.structures.timers cimport Timer, Timers
from fila_server.core.threads.locks cimport pthread_mutex_t
from fila_server.core.threads.mailbox cimport Command
from fila_server.edge.grpc.nghttp2 cimport nghttp2_option, nghttp2_session, nghttp2_session_callbacks
from fila_server.edge.redis.decoder cimport Decoder, Item

cdef enum:
    # --- bounds of a connection
    # of one read; a connection has READS_A_TURN of them, then the others have theirs
    READ_BYTES = 262144
    READS_A_TURN = 4
    OUT_BYTES_HIGH = 262144         # no more is made than a socket will soon take
    STREAMS_MAX = 10000
    STREAM_WINDOW = 1048576
    CONNECTION_WINDOW = 8388608
    FRAME_BYTES_MAX = 65536
    HEADER_LIST_BYTES_MAX = 65536   # as RFC 9113 6.5.2 counts: name, value and 32 a field
    # read and not looked at: beyond it the connection's window is withheld too
    PENDING_BYTES_MAX = 16777216
    OUTBOUND_FRAMES_MAX = 25000     # that nghttp2 may have to send to a client that does not read
    # --- of a thread
    PARTIAL_BYTES_MAX = 536870912   # of messages that are half read, beyond PARTIAL_BYTES_FREE each
    PARTIAL_BYTES_FREE = 65536
    # --- of a stream
    FRAMES_OWED_MAX = 32            # of one producer's stream; then its window is withheld
    INBOX_FRAMES_MAX = 64           # not written to one consumer; then its session is not read
    OPENING_BYTES_MAX = 65536       # of a request that is kept as long as its pull or stream lasts
    COUNTED_FROM_BYTES = 4096       # smaller answers cost less than the stream they travel on

cdef enum Shape:
    UNARY = 0
    PULL                            # unary too; waits in the core, and is taken back when its caller goes
    PRODUCER                        # EnqueueStream
    CONSUMER                        # Consume
    SESSION_CONSUMER                # ConsumeSession
    TO_PYTHON                       # everything else

cdef enum:
    TIMEOUT_MALFORMED = -1

cdef enum Encoding:                 # of a call's messages (grpc-encoding)
    IDENTITY = 0
    GZIP
    DEFLATE
    UNKNOWN_ENCODING

cdef struct Method:
    const char* path
    uint32_t path_length
    int32_t  kind                   # a CommandKind
    uint8_t  shape
    bint     refused_when_unread    # at twice the budget of unread answers

cdef struct Parcel:                 # one message to the client
    Parcel*  next
    uint32_t entry                  # while its answer is awaited
    bint     is_ready
    bint     is_delivery            # WRITTEN when the socket has it
    bint     is_reported            # Python waits to hear that the socket has it
    char*    payload
    size_t   length                 # with the five bytes of the prefix
    size_t   done                   # copied into the out buffer
    uint32_t counted                # of the budget of unread answers
    char     prefix[5]

cdef struct Mark:                   # a parcel's end in the stream of a connection's bytes
    uint64_t at
    uint64_t token                  # of the consumer or Python's call; 0 = only counted
    uint32_t counted                # bytes of the budget of unread answers
    bint     is_delivery

cdef struct Call:
    Call*    next                   # of its connection
    Call*    previous
    Connection* connection
    const Method* method            # NULL until :path is known
    int32_t  stream_id
    uint8_t  shape
    # --- what its headers said
    uint32_t header_bytes
    bint     has_content_type
    bint     has_te                 # "te: trailers"
    bint     is_post
    bint     is_head
    const char* http_status         # it is no gRPC: told so when its request has ended; NULL = it is
    uint32_t thrown_away            # bytes of such a request
    bint     is_open_to_all         # health: each caller is answered
    uint8_t  encoding
    int64_t  timeout_ns             # 0 = none, TIMEOUT_MALFORMED = one that cannot be read
    Timer    timer                  # its deadline, or how long a pull waits for room
    Buffer   traceparent
    Buffer   tracestate
    Buffer   metadata               # path and headers, packed; of calls that go to Python
    # --- who asks
    bint     has_key                # a header named authorization came
    bint     is_unwelcome           # Python says why, and nothing it sends is looked at
    uint64_t caller                 # of the table of rights; 0 = nobody known
    uint64_t stream_of              # the principal in whose streams it is counted; 0 = nobody's
    Buffer   holds                  # queue and channel that it may hold open while it has the right to them
    uint32_t holds_queue_length
    int64_t  slowed_until_ns        # a producer beyond its quota; 0 = none
    # --- the message being read
    uint8_t  prefix[5]
    uint8_t  prefix_got
    char*    partial
    uint32_t partial_length
    uint32_t partial_got
    uint32_t partial_capacity
    int64_t  partial_ns             # when it last grew
    # of a call that has one: its message, until the client has no more to say
    const char* whole
    uint32_t whole_length
    char*    whole_owned            # NULL while it lies in the bytes being read
    Buffer   pending                # read while the call could not take it
    size_t   pending_done
    uint32_t held                   # bytes not given back to the stream's window
    bint     is_gone                # freed once it stands in no line of the thread's
    bint     is_queued              # in the thread's line of calls to look at again
    Call*    next_queued
    # --- where it stands
    uint32_t messages               # taken so far
    uint32_t entry                  # of a pull, consumer, or call to Python; 0 = none
    bint     is_at_hooks            # its last frame is
    uint64_t hook_token             # of that frame
    bint     is_opening             # consumer: the core has not said yet whether
    bint     is_open
    bint     is_paused              # Python has not asked for the next message
    bint     is_half_closed         # the client has no more to say
    bint     half_close_taken
    bint     waits_for_room         # a pull that had to give back what it was given
    int64_t  room_until_ns
    uint32_t room_bytes             # how much room it waits for, or its withheld deliveries
    Command* refused_command        # the mailbox was full; posted again before anything else of this call
    Buffer   request                # a pull's, to ask again
    uint32_t withheld               # deliveries given back, and reported written only when there is room
    Call*    next_withheld
    bint     is_withheld_queued
    # --- what it answers
    Parcel*  first
    Parcel*  last
    uint32_t parcels
    uint32_t owed                   # parcels without their answer
    bint     is_started             # response headers are submitted
    bint     is_deferred            # nghttp2 asks no more until told
    bint     is_ended               # the status is known; what is ready goes first
    bint     is_over                # trailers are submitted
    bint     last_is_known          # the status to end with once nothing is owed
    int32_t  status
    int32_t  retry_ms               # of RESOURCE_EXHAUSTED; 0 = as its reason has it
    Buffer   message                # of the status
    Buffer   details                # google.rpc.Status, serialized

cdef struct Reply:                  # what a Redis client is owed, in its place in the order
    Reply*   next
    Connection* connection
    int32_t  kind                   # an ItemKind
    bint     is_ready
    uint32_t entry                  # while its answer is awaited
    uint32_t copies                 # pushes that it answers: a failure is told to each
    size_t   size                   # of its frames, with the core
    int64_t  wait_ms                # of a read
    Buffer   frames                 # of an HDEL of many tickets: u32 length, frame, ...
    size_t   frames_done
    int64_t  acked
    char*    leased                 # a LeaseResponse: given back when the client leaves before it is written
    size_t   leased_length
    uint32_t counted                # of the budget of unread answers
    Buffer   text                   # the reply, where it is no LeaseResponse

cdef struct Redis:                  # what a connection of the Redis protocol has, in place of a session
    Decoder  decoder
    bint     is_dry                 # it holds no whole item
    Item     item                   # decoded, and not started yet
    bint     has_item
    # --- what is started, and what is owed
    Reply*   first
    Reply*   last
    uint32_t replies
    uint32_t waiting                # replies that are not known yet; all of one lane
    uint8_t  lane
    size_t   started_bytes          # of their frames
    size_t   ready_bytes            # of replies that are known and not in the out buffer
    bint     is_out_full            # nothing is started until the socket has taken some of that
    Reply*   read                   # that waits for messages
    Buffer   holds                  # its queue and channel
    uint32_t holds_queue_length
    # --- who it is: Python says so
    uint32_t entry                  # by which Python speaks of the connection
    Reply*   asked                  # of the command that Python carries out
    uint8_t  protocol               # 2 or 3
    bint     is_welcome             # Python has looked at it
    bint     is_known               # it has sent a key, or none is needed
    uint64_t caller                 # of the table of rights; 0 = keys are off
    size_t   unknown_bytes          # that came while it was not known
    # --- of a command that has not come whole, beyond PARTIAL_BYTES_FREE
    size_t   held_bytes
    int64_t  held_ns                # when that last changed
    # --- the end
    bint     is_ending              # nothing more is started; closed when every reply has left
    bint     leaves_at_once         # and no moment longer
    int64_t  lingers_ns             # since when what comes is thrown away; 0 = it does not

cdef struct Connection:
    Connection* next
    Connection* previous
    IoThread* thread
    nghttp2_session* session        # NULL: it speaks the Redis protocol
    Redis*   redis
    int      fd
    char     peer[72]
    Call*    calls
    # --- out
    char*    out
    size_t   out_length
    size_t   out_done
    size_t   out_capacity
    uint64_t out_made               # bytes ever put into `out`
    Mark*    marks                  # a ring
    uint32_t marks_first
    uint32_t marks_count
    uint32_t marks_capacity
    bint     wants_out              # epoll tells when the socket takes more
    bint     is_dirty
    Connection* next_dirty
    int64_t  unread_bytes           # of the budget, of its answers
    bint     is_paused              # not read: what it sent before is to be carried out first
    bint     is_over                # closed at the end of the turn
    bint     is_queued              # in the thread's line of Redis clients with something to start
    Connection* next_queued
    # --- encryption (tls.pyx); NULL = none
    void*    tls
    bint     is_shaken              # the handshake is over
    void*    seal                   # where OpenSSL puts what it encrypted, until the socket has it
    size_t   sealed_done            # of that, taken by the socket
    size_t   sealed_of              # bytes of `out` that it stands for
    Buffer   names                  # of the client's certificate, packed as headers are; empty = none
    int64_t  certificate_ends_ns    # 0 = never
    # --- in
    size_t   pending_bytes          # of all its calls
    size_t   window_held            # of the connection's window
    # --- who it is, and whether it behaves
    bint     is_local               # a program of this machine
    uint64_t counted_of             # the principal in whose connections it is counted; 0 = nobody's
    bint     may_send_keys          # nobody on the way can read them, or they are allowed all the same
    bint     is_dead
    int64_t  input_ended_ns         # the client has closed its side; 0 = not
    bint     is_settled             # its first SETTINGS came
    int64_t  opened_ns
    int64_t  heard_ns
    int64_t  pinged_ns              # our last ping; 0 = answered
    int64_t  client_pinged_ns
    int64_t  headers_began_ns       # of a header block that has not ended; 0 = none
    uint32_t ping_strikes
    uint32_t trifles                # frames without use since the last that had one
    uint32_t offers                 # calls it has offered to Python since `offers_ns`, while many wait
    int64_t  offers_ns
    int64_t  resets_left            # that its faults may still make us send
    int64_t  resets_ns
    uint8_t  leaving                # 1: told that we leave, 2: told the last stream
    bint     is_faulty              # a GOAWAY for its behaviour is on its way

cdef struct TokenEntry:
    Call*    call
    Parcel*  parcel
    Reply*   reply
    Connection* connection          # Python's name for a Redis client
    uint32_t generation
    uint32_t next_free

cdef struct ScriptedName:
    Text     text
    char     bytes[256]

cdef struct Event:                  # to Python
    Event*   next
    int32_t  what
    uint64_t token
    int64_t  number
    Command* command
    Buffer   bytes

cdef struct Common:                 # of all threads of the edge
    Core*    core
    RightsTable* rights
    # --- the way to Python
    pthread_mutex_t lock
    Event*   first_event
    Event*   last_event
    int      event_fd
    bint     is_signalled
    # --- encryption: what new connections are set up with; NULL = they are plain
    pthread_mutex_t tls_lock
    void*    tls
    # --- names of queues with an on_enqueue script; the lock is taken only while there are any
    pthread_mutex_t scripted_lock
    TextMap  scripted
    int64_t  scripted_count
    # --- with what calls are refused once the threads drain; empty = as by a broker that stops
    Buffer   gone_message
    Buffer   gone_details
    # --- touched by all threads, atomically
    int64_t  unread_bytes           # answers their clients have not read
    int64_t  elsewhere_bytes        # the same, of the asyncio loop's
    int64_t  calls_outstanding
    int64_t  calls_offered          # to Python, and not taken yet
    int64_t  listened_ns[17]        # when each thread last read its sockets; 0 = it has none to read
    int64_t  connections
    int64_t  redis_commands         # ever
    int64_t  redis_blocked          # Redis clients whose read waits for messages
    # --- settings
    int64_t  unread_bytes_max
    int64_t  calls_outstanding_max
    uint32_t message_bytes_max
    uint32_t connections_max        # of each thread
    int      descriptors_kept       # the first that no client is given; 0 = none is kept
    bint     keeps_closed_streams
    bint     serves_strangers       # without keys, other machines too
    bint     takes_plain_keys       # from other machines too

cdef struct Inflation:              # of one compressed message, over several turns where it is large
    Call*    call                   # whose; NULL = none is under way
    void*    stream                 # zlib's
    char*    rest                   # what zlib has not read yet; NULL while it lies in the bytes being read
    Buffer   whole

cdef struct IoThread:
    Common*  common
    uint32_t number                 # of its outbox; the highest byte of its tokens
    Outbox*  outbox
    int      epoll_fd
    int      listeners[8]
    bint     is_redis[8]            # of each listener
    uint32_t listeners_count
    bint     listeners_rest         # no descriptors are left: not asked until the next tick
    IoThread** threads              # of the edge, for whom accepts
    uint32_t threads_count
    uint32_t next_thread
    nghttp2_session_callbacks* callbacks
    nghttp2_option* option
    char*    read_buffer
    int64_t  now_ns
    int64_t  ticked_ns
    int64_t  looked_ns
    int64_t  room_ns
    Connection* connections
    uint32_t connections_count
    Connection* dirty
    Call*    queued                 # calls to look at again in this turn
    Call*    queued_last
    Connection* redis_queued        # Redis clients with something to start
    Connection* redis_queued_last
    Buffer   scratch                # where a frame is put together; empty otherwise
    Call*    withheld
    Call*    unkept                 # whose message lies in the bytes being read
    Connection* judged              # the next whose open calls are judged again
    uint64_t generation             # of the rights by which they were judged last
    int64_t  judged_ns
    void*    digest                 # where secrets are hashed
    uint32_t handshakes             # that went on in this turn
    TokenEntry*    entries
    uint32_t entries_count
    uint32_t entry_free
    Timers   timers
    Command* unposted               # what the mailbox must get and had no room for
    Command* unposted_last
    size_t   partial_bytes          # of half-read messages
    size_t   inflated_bytes         # in this turn
    Inflation inflation
    bint     is_draining
    bint     is_closing             # leave when the last connection is gone
    int64_t  leave_ns               # and at the latest then
