// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxAdvertised bounds a list of references, which is held in memory: about a quarter of a million of them. All lists
// together are bounded by the budget of the process.
const maxAdvertised = 16 << 20

// listCost is how much memory is held for each byte of a list until it has been read: itself, copied as it grows, and
// what is made of it.
const listCost = 4

// errNotGit is about an answer that Git's protocol does not know.
var errNotGit = errors.New("the server's answer is not of Git's protocol")

// Packets of Git's protocol: each begins with its length in hexadecimal digits, which count too, and one of length 0 ends a list
// (gitprotocol-common).
const (
	lengthDigits = 4
	endOfList    = 0
)

// readAdvertised returns a list of references as a server sends it, to the packet that ends it. A list without that
// packet is an error, and never a shorter list: the references that are missing would be taken for deleted ones.
// service is the one that a list over http names in front of all (gitprotocol-http), "" for a list over ssh. The lease
// holds as much as has come; the caller releases it when the list has been read.
func readAdvertised(ctx context.Context, lease *budget.Lease, from io.Reader, service string) ([]byte, error) {
	var list bytes.Buffer
	bounded := newLimitedReader(from, "size of the list of references in bytes", maxAdvertised)
	for packets, named := 0, service == ""; ; packets++ {
		begin := list.Len()
		if err := growLease(ctx, lease, begin); err != nil {
			return nil, err
		}
		length, err := readPacket(&list, bounded)
		packet := list.Bytes()[min(begin+lengthDigits, list.Len()):]
		switch {
		case errors.Is(err, io.EOF) && packets == 0 && list.Len() == 0:
			return nil, errors.New("the server gave no answer")
		case errors.Is(err, errNotGit):
			return nil, err
		case err != nil:
			return nil, cutOffError(list.Len(), err)
		case bytes.HasPrefix(packet, []byte("ERR ")):
			return list.Bytes(), nil // with which a server ends it as well
		case packets == 0 && !named && !bytes.HasPrefix(packet, []byte("# service="+service)):
			return nil, errNotGit
		case length == endOfList && named:
			return list.Bytes(), nil
		case length == endOfList:
			named = true
		}
	}
}

// growLease grows a lease in few steps to cover a list of length bytes.
func growLease(ctx context.Context, lease *budget.Lease, length int) error {
	if length <= budget.FreeBytes {
		return nil
	}
	steps := int64(1) << bits.Len(uint(length)) // at least as much, and less than twice
	if err := lease.Grow(ctx, listCost*steps); err != nil {
		return fmt.Errorf("waiting for room for the list of references: %w", err)
	}
	return nil
}

// readPacket appends one packet, and returns its length.
func readPacket(to *bytes.Buffer, from io.Reader) (length int, err error) {
	var digits [lengthDigits]byte
	if n, err := io.ReadFull(from, digits[:]); err != nil {
		to.Write(digits[:n])
		return 0, err
	}
	parsed, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil || parsed != endOfList && parsed <= lengthDigits {
		return 0, errNotGit
	}
	to.Write(digits[:])
	if parsed == endOfList {
		return endOfList, nil
	}
	_, err = io.CopyN(to, from, int64(parsed)-lengthDigits)
	return int(parsed), err
}

// cutOffError reports how much of a list has arrived. The caller adds how long that took.
func cutOffError(bytes int, err error) error {
	var limit *tree.LimitError
	switch {
	case errors.As(err, &limit):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the list of references ends in its middle, after %d bytes: %w", bytes, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("the server began to answer and did not go on: %d bytes of its list of references came: %w", bytes, err)
}

// limitedReader fails if an answer is longer than allowed.
type limitedReader struct {
	r         io.Reader
	what      string
	left, max int64
}

func newLimitedReader(r io.Reader, what string, limit int64) *limitedReader {
	return &limitedReader{r: r, what: what, left: limit, max: limit}
}

func (c *limitedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &tree.LimitError{What: c.what, Limit: c.max}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
