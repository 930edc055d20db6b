"""One array of cells in offset order: a search is by halves, a deleted frame leaves an empty cell.

The array is closed up when it would have to grow and half of it is empty, and when three quarters of it are:
a search for the next frame passes over no more empty cells than that, however many frames were deleted
behind one that stays. A deletion pays for one or two cells of that. It is closed up, too, when seven eighths
of it are behind, and then what it does not need is given back.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.state.paths cimport frame_last_offset, frame_offset
from fila_server.core.state.state cimport DirectoryCell
from fila_server.core.structures.buffer cimport must_realloc


cdef enum:
    CELLS_CLOSED_UP_MIN = 64

cdef uint64_t _walked = 0


cdef inline void _step() noexcept nogil:
    global _walked
    _walked += 1


cdef uint64_t directory_walked() noexcept nogil:
    return _walked


cdef void _fit(Directory* directory) noexcept nogil:
    """A queue that was long once gives its cells back: at most four times what it needs stay."""
    if directory.capacity <= CELLS_CLOSED_UP_MIN or directory.count * 4 >= directory.capacity:
        return
    directory.capacity = max(directory.count * 2, <uint32_t> CELLS_CLOSED_UP_MIN)
    directory.cells = <DirectoryCell*> must_realloc(
        directory.cells, directory.capacity * sizeof(DirectoryCell))


cdef void _close_up(Directory* directory) noexcept nogil:
    cdef uint32_t i, kept = 0
    for i in range(directory.start, directory.count):
        if directory.cells[i].frame != NULL:
            directory.cells[kept] = directory.cells[i]
            kept += 1
    directory.start = 0
    directory.count = kept
    _fit(directory)


cdef inline void _close_up_if_sparse(Directory* directory) noexcept nogil:
    cdef uint32_t used = directory.count - directory.start
    if (used > CELLS_CLOSED_UP_MIN and directory.live < used // 4) or (
        directory.count > CELLS_CLOSED_UP_MIN and directory.live < directory.count // 8
    ):
        _close_up(directory)


cdef void directory_add(Directory* directory, Frame* frame) noexcept nogil:
    """Offsets only grow, so a new frame goes to the end; a rewritten one takes a dead cell's place."""
    cdef DirectoryCell* cell
    cdef uint32_t i
    if directory.count == directory.capacity:
        if directory.live * 2 < directory.count:
            _close_up(directory)
        else:
            directory.capacity = directory.capacity * 2 + 16
            directory.cells = <DirectoryCell*> must_realloc(
                directory.cells, directory.capacity * sizeof(DirectoryCell))
    cell = &directory.cells[directory.count]
    cell.first_offset = frame.first_offset
    cell.id_high = frame.id_high
    cell.frame = frame
    directory.count += 1
    directory.live += 1
    directory.own += frame.own_ids != NULL
    # A frame rewritten from an older one keeps its offsets: sift it down to where they belong.
    i = directory.count - 1
    while i > directory.start and directory.cells[i - 1].first_offset > directory.cells[i].first_offset:
        directory.cells[i], directory.cells[i - 1] = directory.cells[i - 1], directory.cells[i]
        i -= 1
    if frame.own_ids != NULL:           # its ids say nothing of its place; keep the search by id in order
        directory.cells[i].id_high = directory.cells[i - 1].id_high if i > directory.start else 0


cdef uint32_t _cell_after(Directory* directory, uint64_t offset) noexcept nogil:
    """The first cell whose first offset is above `offset`."""
    cdef uint32_t low = directory.start
    cdef uint32_t high = directory.count
    cdef uint32_t middle
    while low < high:
        middle = (low + high) // 2
        if directory.cells[middle].first_offset <= offset:
            low = middle + 1
        else:
            high = middle
    return low


cdef uint32_t _living_from(Directory* directory, uint32_t i, uint32_t end) noexcept nogil:
    """The first cell from `i` on that has a frame, or `end`."""
    _step()
    while i < end and directory.cells[i].frame == NULL:
        _step()
        i += 1
    return i


cdef void directory_replace(Directory* directory, Frame* old, Frame* frame) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, old.first_offset)
    while i > directory.start:
        _step()
        i -= 1
        if directory.cells[i].frame == old:
            directory.own += frame.own_ids != NULL
            directory.own -= old.own_ids != NULL
            directory.cells[i].frame = frame
            directory.cells[i].first_offset = frame.first_offset
            return


cdef void directory_remove(Directory* directory, Frame* frame) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, frame.first_offset)
    while i > directory.start:
        _step()
        i -= 1
        if directory.cells[i].frame == frame:
            directory.cells[i].frame = NULL
            directory.live -= 1
            directory.own -= frame.own_ids != NULL
            break
        if directory.cells[i].first_offset < frame.first_offset:
            break
    while directory.start < directory.count and directory.cells[directory.start].frame == NULL:
        directory.start += 1
    if directory.start == directory.count:
        directory.start = directory.count = 0
        _fit(directory)
    _close_up_if_sparse(directory)


cdef void directory_free(Directory* directory) noexcept nogil:
    free(directory.cells)
    memset(directory, 0, sizeof(Directory))


cdef Frame* directory_first(Directory* directory) noexcept nogil:
    if directory.start == directory.count:
        return NULL
    return directory.cells[directory.start].frame      # never a deleted one: remove moves `start`


cdef Frame* directory_at(Directory* directory, uint64_t offset) noexcept nogil:
    cdef uint32_t i = _cell_after(directory, offset)
    cdef uint32_t j = i
    while j > directory.start:                          # the last living frame that starts at or below
        _step()
        j -= 1
        if directory.cells[j].frame != NULL:
            if frame_last_offset(directory.cells[j].frame) >= offset:
                return directory.cells[j].frame
            break
    i = _living_from(directory, i, directory.count)
    return directory.cells[i].frame if i < directory.count else NULL


cdef Frame* directory_after(Directory* directory, Frame* frame) noexcept nogil:
    cdef uint32_t i = _living_from(directory, _cell_after(directory, frame.first_offset), directory.count)
    return directory.cells[i].frame if i < directory.count else NULL


cdef uint32_t directory_from(Directory* directory, uint64_t offset) noexcept nogil:
    return max(_cell_after(directory, offset), directory.start + 1) - 1


cdef Frame* directory_next(Directory* directory, uint32_t* cell) noexcept nogil:
    cdef uint32_t i = _living_from(directory, cell[0], directory.count)
    cell[0] = i + 1
    return directory.cells[i].frame if i < directory.count else NULL


cdef uint32_t frame_index(Frame* frame, uint64_t offset) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = frame.count
    cdef uint32_t middle
    if frame.own_ids == NULL:
        if offset < frame.first_offset or offset - frame.first_offset >= frame.count:
            return frame.count
        return <uint32_t> (offset - frame.first_offset)
    while low < high:                   # entries from elsewhere stand in the order of their offsets, too
        middle = (low + high) // 2
        if frame.own_ids[middle].offset < offset:
            low = middle + 1
        else:
            high = middle
    return low if low < frame.count and frame.own_ids[low].offset == offset else frame.count


cdef Frame* directory_ordinary(Directory* directory, uint64_t id_high) noexcept nogil:
    """The first cell of this id: entries from elsewhere have that of the
    frame before them, and no id of their own."""
    cdef uint32_t low = directory.start
    cdef uint32_t high = directory.count
    cdef uint32_t middle
    cdef Frame* frame
    while low < high:
        middle = (low + high) // 2
        if directory.cells[middle].id_high < id_high:
            low = middle + 1
        else:
            high = middle
    frame = directory.cells[low].frame if low < directory.count else NULL
    return frame if frame != NULL and frame.own_ids == NULL and frame.id_high == id_high else NULL


cdef void directory_pop(Queue* queue, Frame* frame) noexcept nogil:
    queue.directory.cells[queue.directory.start].frame = NULL
    queue.directory.live -= 1
    queue.directory.own -= frame.own_ids != NULL
    while (
        queue.directory.start < queue.directory.count
        and queue.directory.cells[queue.directory.start].frame == NULL
    ):
        queue.directory.start += 1


# --- seek --------------------------------------------------------------------------

cdef uint64_t queue_oldest(Queue* queue) noexcept nogil:
    """The oldest retained offset; the next one to be given when nothing is."""
    cdef Frame* frame = directory_first(&queue.directory)
    return frame_offset(frame, 0) if frame != NULL else queue.next_offset


cdef uint64_t queue_revealed_below(Queue* queue) noexcept nogil:
    """The first offset that is on its way, not to be seen yet; the next one to be given when none is."""
    cdef uint64_t below = queue.next_offset
    cdef uint32_t i = queue.directory.count
    cdef Frame* frame
    while i > queue.directory.start:
        _step()
        i -= 1
        frame = queue.directory.cells[i].frame
        if frame != NULL:
            if frame.revealed:
                break
            below = frame.first_offset
    return below


cdef uint64_t queue_offset_at(Queue* queue, int64_t time_ms) noexcept nogil:
    """By halves: no frame was appended before those below it, whatever the clock did. Where the middle has no
    frame any more, the next one that has decides for it."""
    cdef Directory* directory = &queue.directory
    cdef uint32_t low = directory.start
    cdef uint32_t high = directory.count
    cdef uint32_t found = directory.count
    cdef uint32_t middle, living
    while low < high:
        middle = (low + high) // 2
        living = _living_from(directory, middle, high)
        if living < high and directory.cells[living].frame.appended_ms < time_ms:
            low = living + 1
            continue
        if living < high:
            found = living
        high = middle
    return frame_offset(directory.cells[found].frame, 0) if found < directory.count else queue.next_offset
