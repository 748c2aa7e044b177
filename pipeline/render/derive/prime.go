// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"math/big"
	"sync"
)

// smallPrimes are those below 4096, by which most numbers can be divided that are no primes.
var smallPrimes = sync.OnceValue(func() []uint64 {
	const bound = 4096
	var divided [bound]bool
	var primes []uint64
	for n := 3; n < bound; n += 2 {
		if divided[n] {
			continue
		}
		primes = append(primes, uint64(n))
		for multiple := n * n; multiple < bound; multiple += n {
			divided[multiple] = true
		}
	}
	return primes
})

const (
	// searched is how many numbers are looked at from one start.
	searched = 1 << 14
	// rounds of Miller and Rabin's test with which no number was ever seen to be wrongly taken for a prime.
	rounds = 20
)

// number returns a number of exactly so many bits, a multiple of 8, whose upper two are set, so that the product of two has twice as many.
func (s *Stream) number(bits int) *big.Int {
	bytes := s.Bytes(bits / 8)
	bytes[0] |= 0xc0
	return new(big.Int).SetBytes(bytes)
}

// prime returns a prime of exactly the specified number of bits. If not is set, the prime minus one is not a
// multiple of it.
func (s *Stream) prime(bits int, not *big.Int) *big.Int {
	for {
		start := s.number(bits)
		start.SetBit(start, 0, 1)
		found := firstPrime(start, big.NewInt(2), bits)
		if found == nil {
			continue
		}
		if not == nil || new(big.Int).Mod(new(big.Int).Sub(found, big.NewInt(1)), not).Sign() != 0 {
			return found
		}
	}
}

// firstPrime returns the first prime among start, start+step, start+2*step, …, nil if it is far or has more bits.
func firstPrime(start, step *big.Int, bits int) *big.Int {
	primes := smallPrimes()
	rests, steps := make([]uint64, len(primes)), make([]uint64, len(primes))
	for i, prime := range primes {
		by := new(big.Int).SetUint64(prime)
		rests[i], steps[i] = new(big.Int).Mod(start, by).Uint64(), new(big.Int).Mod(step, by).Uint64()
	}
	candidate := new(big.Int)
	for n := range uint64(searched) {
		if hasSmallFactor(primes, rests, steps, n) {
			continue
		}
		candidate.Add(start, candidate.Mul(step, candidate.SetUint64(n)))
		if candidate.BitLen() > bits {
			return nil
		}
		if candidate.ProbablyPrime(rounds) {
			return candidate
		}
	}
	return nil
}

func hasSmallFactor(primes, rests, steps []uint64, n uint64) bool {
	for i, prime := range primes {
		if (rests[i]+n*steps[i])%prime == 0 {
			return true
		}
	}
	return false
}
