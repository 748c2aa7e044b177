// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"hash/fnv"
	"io"
	"time"
)

// Phase returns a number from 0 to 1 that is always the same for a key, for spreading what is done for many keys over time.
func Phase(key string) float64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, key) // it cannot fail
	// The upper digits of the hash of a short key are much like those of its neighbours, so they are mixed with the others.
	h := hash.Sum64()
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11) / float64(uint64(1)<<53)
}

// Backoff returns how long a job waits that has failed so often in a row: from one second to five minutes, and not as long for
// each pipeline, so that they do not all come at once.
func Backoff(failures int, pipeline string) time.Duration {
	wait := min(time.Second<<min(failures, 16), 5*time.Minute)
	return wait + time.Duration(float64(wait)*0.2*Phase(pipeline))
}

const (
	minLongestBackoff = 30 * time.Second
	maxLongestBackoff = 5 * time.Minute
)

// LongestBackoff returns how long something waits at most between tries that fail, by how long the last try took: 30 seconds, or so
// long that it is tried for at most a hundredth of the time, which five minutes always are. What fails quickly is noticed quickly when
// it works again, and what its author made expensive to try leaves the processors to others.
func LongestBackoff(took time.Duration) time.Duration {
	return max(minLongestBackoff, min(100*min(took, time.Minute), maxLongestBackoff))
}
