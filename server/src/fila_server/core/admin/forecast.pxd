"""What decides when a key's messages go, as it stands now: operations/forecast.py makes times of it.

The facts are those of deficit round robin: what is to be sent before the key's first message, who shares
the channel with it and for how long, and the line in front of the bucket that holds it. Walks are cut: flows
of a ring, consumers of a channel, costs of the key's own messages.
"""

from libc.stdint cimport uint32_t

from fila_server.core.admin.step_budget cimport StepBudget
from fila_server.core.state.state cimport Channel, Core, Flow, Key, Subqueue, Waiter
from fila_server.core.structures.buffer cimport Buffer

# A seam_frames.Forecast, as `field` of `b`. `flow` may be NULL; `apart` is another key's flow that is told by
# itself and not among the rivals, or NULL; `held` is the sub-queue whose bucket holds it, or NULL.
cdef void put_forecast(
    Core* core, Buffer* b, uint32_t field, Channel* channel, Key* key, Flow* flow, Flow* apart,
    Subqueue* held, StepBudget* steps) noexcept nogil
# Tokens that others of its line take before one is spoken for its first message.
cdef double tokens_before(Core* core, Waiter* waiter, StepBudget* steps) noexcept nogil
