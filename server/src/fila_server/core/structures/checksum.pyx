"""CRC-32C by the processor's instruction, for our own checks and for RocksDB's.

Every byte of the write-ahead log and of each payload file goes through this checksum, on the
scheduler thread. Debian compiles RocksDB for the oldest x86-64, where it is done by tables, at
1.2 GB/s: a third of all the time the store took (docs/adr/0005). The instruction, which every
such processor since 2008 has, does 8 GB/s.

So this module also defines the function under the name RocksDB calls it by. The package loads
it before anything else and for all to see (core/__init__.py), and the dynamic linker then takes
it for RocksDB's own. Should a later RocksDB not ask for that name, nothing changes but the speed.
On other architectures RocksDB picks the instruction itself, and this is only ours.
"""


cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>

    static uint32_t fila_crc_tables[8][256];
    static unsigned long fila_crc_calls;        /* about: two threads may count as one */

    __attribute__((constructor)) static void fila_crc_prepare(void) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i;
            for (int bit = 0; bit < 8; bit++)
                crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
            fila_crc_tables[0][i] = crc;
        }
        for (int table = 1; table < 8; table++)
            for (uint32_t i = 0; i < 256; i++) {
                uint32_t before = fila_crc_tables[table - 1][i];
                fila_crc_tables[table][i] = (before >> 8) ^ fila_crc_tables[0][before & 0xff];
            }
    }

    /* Eight bytes a step; little-endian or not, since bytes are taken one by one. */
    static uint32_t fila_crc_by_table(uint32_t crc, const uint8_t* bytes, size_t count) {
        crc = ~crc;
        for (; count >= 8; bytes += 8, count -= 8)
            crc = fila_crc_tables[7][(crc ^ bytes[0]) & 0xff] ^
            fila_crc_tables[6][((crc >> 8) ^ bytes[1]) & 0xff]
                ^ fila_crc_tables[5][((crc >> 16) ^ bytes[2]) & 0xff] ^ fila_crc_tables[4][(crc >> 24) ^
                bytes[3]] ^ fila_crc_tables[3][bytes[4]] ^ fila_crc_tables[2][bytes[5]] ^
                fila_crc_tables[1][bytes[6]] ^ fila_crc_tables[0][bytes[7]];
        while (count--)
            crc = (crc >> 8) ^ fila_crc_tables[0][(crc ^ *bytes++) & 0xff];
        return ~crc;
    }

    #if defined(__x86_64__)
    __attribute__((target("sse4.2")))
    static uint32_t fila_crc_by_instruction(uint32_t start, const uint8_t* bytes, size_t count) {
        uint64_t crc = (uint32_t)~start;
        for (; count >= 8; bytes += 8, count -= 8) {
            uint64_t word;
            __builtin_memcpy(&word, bytes, 8);
            crc = __builtin_ia32_crc32di(crc, word);
        }
        while (count--)
            crc = __builtin_ia32_crc32qi((uint32_t)crc, *bytes++);
        return ~(uint32_t)crc;
    }
    static uint32_t fila_crc(uint32_t start, const uint8_t* bytes, size_t count) {
        return __builtin_cpu_supports("sse4.2") ? fila_crc_by_instruction(start, bytes, count)
                                                : fila_crc_by_table(start, bytes, count);
    }
    /* rocksdb::crc32c::Extend(uint32_t, const char*, size_t) */
    __attribute__((visibility("default")))
    uint32_t _ZN7rocksdb6crc32c6ExtendEjPKcm(uint32_t start, const char* bytes, size_t count);
    uint32_t _ZN7rocksdb6crc32c6ExtendEjPKcm(uint32_t start, const char* bytes, size_t count) {
        unsigned long calls = __atomic_load_n(&fila_crc_calls, __ATOMIC_RELAXED);
        __atomic_store_n(&fila_crc_calls, calls + 1, __ATOMIC_RELAXED);
        return fila_crc(start, (const uint8_t*)bytes, count);
    }
    #else
    static uint32_t fila_crc(uint32_t start, const uint8_t* bytes, size_t count) {
        return fila_crc_by_table(start, bytes, count);
    }
    #endif
    """
    uint32_t fila_crc(uint32_t start, const uint8_t* bytes, size_t count) nogil
    uint32_t fila_crc_by_table(uint32_t start, const uint8_t* bytes, size_t count) nogil
    unsigned long fila_crc_calls


cdef uint32_t crc32c(const uint8_t* content, size_t byte_count) noexcept nogil:
    return fila_crc(0, content, byte_count)


def extend(uint32_t start, const uint8_t[::1] content, bint by_table=False):
    """The checksum of what `start` is the checksum of, with `content` behind it."""
    if content.shape[0] == 0:
        return start
    if by_table:
        return fila_crc_by_table(start, &content[0], content.shape[0])
    return fila_crc(start, &content[0], content.shape[0])


def calls_by_rocksdb():
    """How often RocksDB came here; of use to the test that it does."""
    return fila_crc_calls
