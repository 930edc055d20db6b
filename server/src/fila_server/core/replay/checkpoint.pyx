"""A replayed core, written down as it lies in memory, and taken up again by another process.

    the one     arena_used() before its Replay is made: from then on what the core allocates lies in one place
                image_write(replay, out) between two passes: the pages that are not zero
    the other   Resumed(directory, head, facts, source): an empty store is opened, the pages go back to where
                they were, and the core in them gets the new process's store, mailbox and outboxes

No field of any structure can be forgotten so: the ring's order and deficits, buckets, timers, leases,
positions and random numbers are what they were, bit for bit. It asks that both processes run the very same
build (the facts carry no layout), on one kind of machine, and that the source of an image may be trusted
as one trusts a program: pointers come from it. What a process has for itself (descriptors, RocksDB's
objects, blocks of the history) is not taken over. Words that point to constants of a compiled module are
listed, since modules are loaded elsewhere each time.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strcmp, strstr

from fila_server.core.replay.arena cimport (
    ARENA_PAGE_BYTES, Arena, arena_begin, arena_calloc, arena_free, arena_holds, arena_malloc, arena_open,
    arena_realloc, arena_size,
)
from fila_server.core.replay.replay cimport Replay
from fila_server.core.state.state cimport Core
from fila_server.core.storage.families cimport Store
from fila_server.core.storage.reclaim cimport Upkeep
from fila_server.core.storage.rocksdb cimport (
    rocksdb_writebatch_create_from, rocksdb_writebatch_data, rocksdb_writebatch_t,
)
from fila_server.core.threads.blocks cimport Block, History
from fila_server.core.threads.reader cimport Loader

cdef extern from "<link.h>" nogil:
    ctypedef struct Elf64_Phdr:
        uint32_t p_type
        uint64_t p_vaddr
        uint64_t p_memsz
    struct dl_phdr_info:
        uint64_t dlpi_addr
        const char* dlpi_name
        const Elf64_Phdr* dlpi_phdr
        uint16_t dlpi_phnum
    int dl_iterate_phdr(int (*each)(dl_phdr_info*, size_t, void*) noexcept nogil, void* reported)
    enum:
        PT_LOAD
        PT_DYNAMIC
        DT_STRTAB
        DT_SYMTAB
        DT_RELA
        DT_RELASZ
        DT_JMPREL
        DT_PLTRELSZ

cdef extern from "<sys/mman.h>" nogil:
    int mprotect(void* at, size_t length, int protection)
    enum:
        PROT_READ
        PROT_WRITE

cdef struct Module:                         # one compiled module of the core, as it is loaded
    const char* name
    uint64_t begins, ends

cdef enum:
    MODULES_MAX = 512
    RUN_PAGES_MAX = 256
    RELOCATION_WORDS = 3
    SYMBOL_BYTES = 24
    # of a word that holds a function's address: x86-64, then aarch64
    X86_GLOBAL = 6
    X86_JUMP = 7
    ARM_GLOBAL = 1025
    ARM_JUMP = 1026

cdef const char* WHERE = "/fila_server/core/"
cdef Module modules[MODULES_MAX]
cdef uint32_t module_count = 0
cdef uint32_t redirected = 0


class NotTaken(Exception):
    """There is no image of this core, or none that this process can take up; the text says why."""


# --- whose allocations go where ----------------------------------------------------------------

cdef void* _in_place_of(const char* name) noexcept nogil:
    if strcmp(name, b"malloc") == 0:
        return <void*> arena_malloc
    if strcmp(name, b"calloc") == 0:
        return <void*> arena_calloc
    if strcmp(name, b"realloc") == 0:
        return <void*> arena_realloc
    return <void*> arena_free if strcmp(name, b"free") == 0 else NULL


cdef void _redirect_table(
        uint64_t base, const uint64_t* table, uint64_t length, const char* symbols,
        const char* texts) noexcept nogil:
    """Let each word that names one of the four functions name the arena's."""
    global redirected
    cdef const uint64_t* entry = table      # where the word is, symbol << 32 | kind, what to add
    cdef uint32_t kind
    cdef uint64_t page
    cdef void* instead
    cdef void** word
    while entry < table + length // 8:
        kind = <uint32_t> entry[1]
        if kind == X86_GLOBAL or kind == X86_JUMP or kind == ARM_GLOBAL or kind == ARM_JUMP:
            # a symbol begins with the place of its name
            instead = _in_place_of(texts + (<const uint32_t*> (symbols + SYMBOL_BYTES * (entry[1] >> 32)))[0])
            word = <void**> (base + entry[0])
            page = <uint64_t> word // ARENA_PAGE_BYTES * ARENA_PAGE_BYTES
            # the linker left it read-only
            if instead != NULL and mprotect(<void*> page, ARENA_PAGE_BYTES, PROT_READ | PROT_WRITE) == 0:
                word[0] = instead
                redirected += 1
        entry += RELOCATION_WORDS


cdef void _redirect(uint64_t base, const uint64_t* dynamic) noexcept nogil:
    """The tables that the loader worked by. It left their addresses in them, not their offsets."""
    cdef uint64_t texts = 0, symbols = 0, plain = 0, plain_bytes = 0, calls = 0, calls_bytes = 0
    while dynamic[0] != 0:
        if dynamic[0] == DT_STRTAB:
            texts = dynamic[1]
        elif dynamic[0] == DT_SYMTAB:
            symbols = dynamic[1]
        elif dynamic[0] == DT_RELA:
            plain = dynamic[1]
        elif dynamic[0] == DT_RELASZ:
            plain_bytes = dynamic[1]
        elif dynamic[0] == DT_JMPREL:
            calls = dynamic[1]
        elif dynamic[0] == DT_PLTRELSZ:
            calls_bytes = dynamic[1]
        dynamic += 2
    if texts < base or symbols < base:
        return
    _redirect_table(base, <const uint64_t*> plain, plain_bytes, <const char*> symbols, <const char*> texts)
    _redirect_table(base, <const uint64_t*> calls, calls_bytes, <const char*> symbols, <const char*> texts)


cdef int _each_module(dl_phdr_info* info, size_t size, void* redirects) noexcept nogil:
    global module_count
    cdef const char* name = strstr(info.dlpi_name, WHERE) if info.dlpi_name != NULL else NULL
    cdef const Elf64_Phdr* part
    cdef Module* module
    cdef uint16_t i
    if name == NULL or module_count == MODULES_MAX:
        return 0
    module = &modules[module_count]
    module_count += 1
    module.name, module.begins, module.ends = name, info.dlpi_addr, info.dlpi_addr
    for i in range(info.dlpi_phnum):
        part = &info.dlpi_phdr[i]
        if part.p_type == PT_LOAD:
            module.ends = max(module.ends, info.dlpi_addr + part.p_vaddr + part.p_memsz)
        elif part.p_type == PT_DYNAMIC and redirects != NULL:
            _redirect(info.dlpi_addr, <const uint64_t*> (info.dlpi_addr + part.p_vaddr))
    return 0


cdef _redirect_all():
    global module_count
    module_count = 0
    dl_iterate_phdr(_each_module, <void*> 1)
    if not redirected:
        raise NotTaken("this system does not let a replay choose where its memory lies: 64-bit ELF is needed")
    arena_begin()


def arena_used():
    """From here on what the core allocates lies in the arena. Call it before a Replay is made; raises
    NotTaken."""
    if arena_open() == NULL:
        raise NotTaken("the addresses that a checkpoint's memory lies at are not free in this process")
    if not redirected:
        _redirect_all()


# --- writing it down ---------------------------------------------------------------------------

cdef void _empty_blocks(Core* core) noexcept nogil:
    """What the history's blocks held is in somebody's tables by now."""
    cdef History* history = core.history
    cdef Block* block = history.free_blocks
    while block != NULL:
        history.free_blocks = block.next
        history.made -= 1
        free(block)
        block = history.free_blocks
    block = history.current
    if arena_holds(block):
        memset(block.at_us, 0, <uint64_t> block + arena_size(block) - <uint64_t> block.at_us)


cdef bint _is_zero(const uint64_t* at, uint64_t words) noexcept nogil:
    cdef uint64_t i
    for i in range(words):
        if at[i]:
            return False
    return True


cdef list _pointers_out(Arena* arena):
    """Words that point into a module of the core: (offset in the arena, module, offset in the module)."""
    cdef list found = []
    cdef uint64_t i, low = ~<uint64_t> 0, high = 0, word
    cdef uint32_t m
    for m in range(module_count):
        low, high = min(low, modules[m].begins), max(high, modules[m].ends)
    for i in range(arena.used // 8):
        word = (<uint64_t*> arena)[i]
        if low <= word < high:
            for m in range(module_count):
                if modules[m].begins <= word < modules[m].ends:
                    found.append((i * 8, modules[m].name.decode(), word - modules[m].begins))
    return found


cdef str _written(rocksdb_writebatch_t* batch):
    """What a batch holds for the next pass, which may be held up by whether there is anything."""
    cdef size_t length = 0
    cdef const char* data = rocksdb_writebatch_data(batch, &length)
    return PyBytes_FromStringAndSize(data, <Py_ssize_t> length).hex()


def image_write(Replay replay, out):
    """Write the core's memory to `out`, and return the facts that Resumed wants beside it. Between two
    passes; the replay's recording is at its end block, with no block taken. Raises NotTaken."""
    cdef Core* core = replay.core
    cdef Loader* loader = core.loader
    cdef Arena* arena = arena_open()
    cdef uint64_t pages, first, page
    cdef uint64_t head[2]
    if not arena_holds(core):
        raise NotTaken("this core does not lie in the arena")
    if core.shared.blocked or core.mailbox.count or loader.answered != NULL or replay.begun:
        raise NotTaken(
            f"pass {core.counters.passes} waits for a disk that refused its writes; choose another moment")
    _empty_blocks(core)
    arena.root = core
    facts = {
        "pointers": _pointers_out(arena), "used": arena.used, "passes": core.counters.passes,
        "batches": [_written(core.settles), _written(core.enqueues), _written(core.apart)],
    }
    pages = (arena.used + ARENA_PAGE_BYTES - 1) // ARENA_PAGE_BYTES
    page = 0
    while page < pages:
        if _is_zero(<uint64_t*> (<char*> arena + page * ARENA_PAGE_BYTES), ARENA_PAGE_BYTES // 8):
            page += 1
            continue
        first = page
        while page < pages and page - first < RUN_PAGES_MAX and not _is_zero(
                <uint64_t*> (<char*> arena + page * ARENA_PAGE_BYTES), ARENA_PAGE_BYTES // 8):
            page += 1
        head[0], head[1] = first, page - first
        out.write(PyMemoryView_FromMemory(<char*> head, sizeof(head), PyBUF_READ))
        out.write(PyMemoryView_FromMemory(
            <char*> arena + first * ARENA_PAGE_BYTES, <Py_ssize_t> (head[1] * ARENA_PAGE_BYTES), PyBUF_READ))
    return facts


# --- taking it up again ------------------------------------------------------------------------

cdef _read_pages(Arena* arena, uint64_t used, source):
    cdef uint64_t head[2]
    cdef Py_ssize_t length
    cdef bytes read, got
    while True:
        read = source.read(sizeof(head))
        if not read:
            return
        if len(read) < <Py_ssize_t> sizeof(head):
            raise NotTaken("the image is cut short")
        memcpy(head, <const char*> read, sizeof(head))
        if head[1] > RUN_PAGES_MAX or (head[0] + head[1] - 1) * ARENA_PAGE_BYTES >= used:
            raise NotTaken("the image has pages where none belong")
        length = <Py_ssize_t> (head[1] * ARENA_PAGE_BYTES)
        got = source.read(length)
        if len(got) < length:
            raise NotTaken("the image is cut short")
        memcpy(<char*> arena + head[0] * ARENA_PAGE_BYTES, <const char*> got, <size_t> length)


cdef _point_out(Arena* arena, pointers):
    cdef uint64_t offset, inside
    cdef uint32_t m
    where = {modules[m].name.decode(): m for m in range(module_count)}
    for offset, name, inside in pointers:
        if name not in where or offset + 8 > arena.used:
            raise NotTaken(f"the image points into {name}, which is not loaded here")
        m = where[name]
        (<uint64_t*> (<char*> arena + offset))[0] = modules[m].begins + inside


cdef rocksdb_writebatch_t* _batch(str written) except NULL:
    cdef bytes data = bytes.fromhex(written)
    return rocksdb_writebatch_create_from(data, len(data))


cdef class Resumed(Replay):
    """A Replay that goes on where an image was written."""

    def __init__(self, str data_dir, dict head, dict facts, source):
        """data_dir: an empty directory. head: the recording's row `base`. source: what image_write wrote.
        Raises NotTaken; the process can then begin no other."""
        cdef Core* fresh
        cdef Core* core
        cdef Arena* arena
        Replay.__init__(self, data_dir, head, [], sample=head.get("sample", 1))
        self.recording.end_block()
        while (block := self.recording.take()) is not None:     # what opening an empty store decided
            block.give_back()
        arena = arena_open()
        if arena == NULL:
            raise NotTaken("the addresses that a checkpoint's memory lies at are not free in this process")
        _read_pages(arena, facts["used"], source)
        if arena.used != <uint64_t> facts["used"] or not arena_holds(arena.root):
            raise NotTaken("the image is not what its facts say")
        _redirect_all()
        _point_out(arena, facts["pointers"])
        fresh, core = self.core, <Core*> arena.root
        if core.counters.passes != <uint64_t> facts["passes"]:
            raise NotTaken("the image is not what its facts say")
        self._hand_over(fresh, core)
        settles, enqueues, apart = facts["batches"]
        core.settles, core.enqueues, core.apart = _batch(settles), _batch(enqueues), _batch(apart)
        self.core, self.first = core, 0

    cdef void _hand_over(self, Core* fresh, Core* core) noexcept nogil:
        """What is this process's own. `fresh` stays as it is, and is never used again."""
        cdef Store* store = fresh.store
        cdef Upkeep* upkeep = core.shared.upkeep        # in the image, and so in one made of this core
        cdef Upkeep* own = fresh.shared.upkeep
        core.store, core.error = fresh.store, fresh.error
        store.muted = True
        own.live_frame_bytes, own.held_bytes = upkeep.live_frame_bytes, upkeep.held_bytes
        upkeep[0] = own[0]
        core.shared.watch, core.shared.failure = fresh.shared.watch, fresh.shared.failure
        core.mailbox, core.outboxes, core.loader = fresh.mailbox, fresh.outboxes, fresh.loader
        core.history = fresh.history
