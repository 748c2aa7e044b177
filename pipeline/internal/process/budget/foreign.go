// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// patience is how long one waits for others who read from foreign servers.
	patience = 30 * time.Second
	// leastBytes and mostBytes bound how much memory all answers of foreign servers take together, and partOfMemory is
	// which part of the process' memory they take in between.
	leastBytes, mostBytes, partOfMemory = 96 << 20, 1 << 30, 4
	// FreeBytes is the uncounted part of each answer, so that small ones never wait.
	FreeBytes = 256 << 10
)

// foreign is the joint budget for all data from foreign servers in this process: memory, and unpacking slots.
type foreign struct{ memory, unpacking *Budget }

// shared is made when it is first needed: the limit of the process' memory is known by then.
var shared = sync.OnceValue(func() foreign {
	bytes := int64(leastBytes * 2)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		bytes = min(max(limit/partOfMemory, leastBytes), mostBytes)
	}
	places := int64(max(2, runtime.GOMAXPROCS(0)))
	return foreign{memory: New(bytes, bytes/2, patience), unpacking: New(places, places-1, 10*patience)}
})

type teamKey struct{}

// WithTeam returns a context for what is done for a team, unless it already is for one.
func WithTeam(ctx context.Context, team string) context.Context {
	if _, ok := ctx.Value(teamKey{}).(string); ok {
		return ctx
	}
	return context.WithValue(ctx, teamKey{}, team)
}

// teamOf returns the team that something is done for, or other where it is done for none.
func teamOf(ctx context.Context, other string) string {
	if team, ok := ctx.Value(teamKey{}).(string); ok {
		return team
	}
	return "\x00" + other
}

// Memory returns an empty lease of the memory for the answers of foreign servers. Work without a team is charged to
// the server.
func Memory(ctx context.Context, server string) *Lease {
	return shared().memory.Lease(teamOf(ctx, server))
}

// Unpack waits for a slot to unpack a large archive, which occupies a processor for long, and for the memory that
// it needs.
func Unpack(ctx context.Context, server string, memory int64) (release func(), err error) {
	place, room := shared().unpacking.Lease(teamOf(ctx, server)), Memory(ctx, server)
	release = func() { room.Release(); place.Release() }
	if err = place.Grow(ctx, 1); err == nil {
		err = room.Grow(ctx, memory)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("waiting to unpack what %s has sent: %w", server, err)
	}
	return release, nil
}

// ReadAll returns what is read from a foreign server, at most so many bytes and one more. The lease, which the caller
// releases, holds as much as has come, and not what was announced.
func ReadAll(ctx context.Context, lease *Lease, from io.Reader, most int64) ([]byte, error) {
	var content bytes.Buffer
	for size := int64(FreeBytes); ; size *= 2 {
		size = min(size, most+1)
		_, err := io.CopyN(&content, from, size-int64(content.Len()))
		if errors.Is(err, io.EOF) {
			return content.Bytes(), nil
		}
		if err != nil || int64(content.Len()) > most {
			return content.Bytes(), err
		}
		// The buffer is copied when it grows.
		if err := lease.Grow(ctx, 3*size); err != nil {
			return nil, err
		}
	}
}
