"""How much room a bounded queue has: an enqueue is refused when it is full, and only then."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.model import DELAYED, DONE, READY, QueueModel
from tests.simulation.oracles import Broken
from tests.simulation.world import World

EXHAUSTED = 8


@dataclass(frozen=True)
class Room:
    """As a command finds it; between `least` and `most` messages wait."""

    bound: int
    least: int
    most: int

    def check(self, codes: Sequence[int]) -> None:
        accepted = 0
        for code in codes:
            if code == EXHAUSTED and self.most + accepted < self.bound:
                raise Broken(
                    f"refused for want of room, and no more than {self.most + accepted} of {self.bound} wait"
                )
            if code == 0 and self.bound and self.least + accepted >= self.bound:
                raise Broken(f"accepted, and {self.least + accepted} of {self.bound} wait {self} {codes}")
            accepted += code == 0


def room_of(world: World, queue: QueueModel) -> Room:
    notes = [n for c in queue.channels.values() for n in c.all_notes()]
    under_way = sum(1 for entry in world.under_way() if entry.queue is queue)
    most = len({id(n.entry) for n in notes if n.state != DONE}) + under_way + len(queue.ghosts)
    sure = {
        id(n.entry)
        for n in notes
        if n.state in (READY, DELAYED) and not n.maybe and n.returned_pass != world.pass_number
    }
    rebuilt = any(c.unordered_until >= world.pass_number for c in queue.channels.values())
    # Some that wait as far as the world can see may be leased, or not be taken in yet.
    hidden = world.cold or world.blurred or rebuilt or world.lost_leases()
    return Room(queue.config["max_depth"], 0 if hidden else len(sure), most)
