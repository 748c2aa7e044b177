// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"hash/fnv"
	"math/rand/v2"
)

// draw makes the random choices of one case.
type draw struct{ *rand.Rand }

// newDraw returns the choices of a case: the same for the same seed, installation and number.
func newDraw(seed uint64, installation string, number int) draw {
	h := fnv.New64a()
	_, _ = h.Write([]byte(installation))
	return draw{rand.New(rand.NewPCG(seed, h.Sum64()^uint64(number)*0x9e3779b97f4a7c15))} //nolint:gosec // cases, not secrets
}

// happensWithProbability reports whether something of the probability p happens.
func (d draw) happensWithProbability(p float64) bool { return d.Float64() < p }

// intBetween returns a number from low to high, both included.
func (d draw) intBetween(low, high int) int { return low + d.IntN(high-low+1) }

// pick returns one of the choices.
func pick[T any](d draw, choices ...T) T { return choices[d.IntN(len(choices))] }

// pickSome returns each of the choices with the probability p, in their order.
func pickSome[T any](d draw, p float64, choices ...T) []T {
	var out []T
	for _, c := range choices {
		if d.happensWithProbability(p) {
			out = append(out, c)
		}
	}
	return out
}

// object is a JSON object.
type object = map[string]any

// jsonList makes a JSON list.
func jsonList[T any](values ...T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
