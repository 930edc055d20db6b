package fila

// messageQueue holds unbegun messages in the order they came.
type messageQueue struct {
	messages []*Message
	head     int
}

func (q *messageQueue) len() int { return len(q.messages) - q.head }

func (q *messageQueue) push(m *Message) {
	if q.head > 0 && q.head == len(q.messages) {
		q.messages, q.head = q.messages[:0], 0
	}
	q.messages = append(q.messages, m)
}

// pop returns up to max of the oldest; nil when there is none.
func (q *messageQueue) pop(max int) []*Message {
	count := min(max, q.len())
	if count == 0 {
		return nil
	}
	taken := make([]*Message, count)
	copy(taken, q.messages[q.head:])
	clear(q.messages[q.head : q.head+count])
	q.head += count
	if q.head > 1024 && q.head > len(q.messages)/2 {
		q.messages = append(q.messages[:0], q.messages[q.head:]...)
		q.head = 0
	}
	return taken
}

func (q *messageQueue) popNewest() *Message {
	if q.len() == 0 {
		return nil
	}
	last := len(q.messages) - 1
	m := q.messages[last]
	q.messages[last] = nil
	q.messages = q.messages[:last]
	return m
}

// remove drops messages by lease, and returns how many there were.
func (q *messageQueue) remove(leases map[uint64]bool) int {
	kept := make([]*Message, 0, q.len())
	for _, m := range q.messages[q.head:] {
		if !leases[m.LeaseID] {
			kept = append(kept, m)
		}
	}
	dropped := q.len() - len(kept)
	q.messages, q.head = kept, 0
	return dropped
}

func (q *messageQueue) leases() []uint64 {
	leases := make([]uint64, 0, q.len())
	for _, m := range q.messages[q.head:] {
		leases = append(leases, m.LeaseID)
	}
	return leases
}

// clear empties the queue and returns the leases that were in it.
func (q *messageQueue) clear() []uint64 {
	leases := q.leases()
	q.messages, q.head = nil, 0
	return leases
}
