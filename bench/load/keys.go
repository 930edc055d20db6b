package main

import (
	"fmt"
	"math/rand/v2"
)

// newKeys returns a function that names the fairness key of each message in turn.
func newKeys(plan Plan, producer int) func() string {
	names := make([]string, plan.Keys)
	for i := range names {
		names[i] = keyName(i)
	}
	if plan.Distribution == zipf {
		// The producer's number is part of the seed: two producers must not send the same sequence.
		draw := rand.NewZipf(rand.New(rand.NewPCG(plan.Seed, uint64(producer))), plan.ZipfExponent, 1, uint64(plan.Keys-1))
		return func() string { return names[draw.Uint64()] }
	}
	next := 0
	return func() string {
		key := names[next]
		next = (next + 1) % plan.Keys
		return key
	}
}

// keyName has one length for all keys, so that loads of few and of many keys carry messages of one size.
func keyName(number int) string { return fmt.Sprintf("k%07d", number) }
