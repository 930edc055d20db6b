/* Which edges of the compiled code an input goes through: loaded with LD_PRELOAD before what is built with
   -fsanitize-coverage=trace-pc, whose every block calls __sanitizer_cov_trace_pc.

   An edge is a pair of blocks, as a place in a map of bytes; how often it was gone through counts in steps of
   doubling, so that a loop that runs ten times is something new after one that ran once. One thread. */

#include <stdint.h>
#include <string.h>

#define PLACES 65536

static uint8_t now[PLACES];
static uint8_t seen[PLACES];    /* a bit for each step */
static uintptr_t before;

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t here = (uintptr_t)__builtin_return_address(0);
    uint8_t *place = &now[(here ^ (here >> 16) ^ before) & (PLACES - 1)];
    if (*place < 255)
        ++*place;
    before = here << 1;
}

void fila_input_begins(void)
{
    memset(now, 0, sizeof now);
    before = 0;
}

static uint8_t step(uint8_t count)
{
    uint8_t bits = 0;
    while (count) {
        count >>= 1;
        bits++;
    }
    return (uint8_t)(1 << (bits - 1));
}

/* How many places, or steps of one, this input is the first to reach. */
int fila_input_ends(void)
{
    int fresh = 0;
    for (int i = 0; i < PLACES; i += 8) {
        uint64_t some;
        memcpy(&some, now + i, 8);
        if (!some)
            continue;
        for (int j = i; j < i + 8; j++) {
            uint8_t bit = now[j] ? step(now[j]) : 0;
            if (bit & ~seen[j]) {
                seen[j] |= bit;
                fresh++;
            }
        }
    }
    return fresh;
}

/* Places reached by any input so far. */
int fila_edges(void)
{
    int edges = 0;
    for (int i = 0; i < PLACES; i++)
        edges += seen[i] != 0;
    return edges;
}
