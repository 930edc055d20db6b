package fila

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait before attempt after attempt: doubling, capped, half of it left to chance.
// Clients that lost the same broker at the same moment must not come back at the same moment.
type Backoff struct {
	Base time.Duration // the first wait, at most
	Cap  time.Duration // no wait is longer
	// Random returns a number in [0, 1); nil for a good source.
	Random func() float64
}

func (b Backoff) wait(attempt int) time.Duration {
	ceiling := min(float64(b.Cap), float64(b.Base)*math.Pow(2, float64(min(attempt, 32))))
	random := b.Random
	if random == nil {
		random = rand.Float64
	}
	return time.Duration(ceiling * (0.5 + 0.5*random()))
}
