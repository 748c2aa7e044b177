// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The state left by the last process is read only from the files that were written before any acknowledgement. It
// then makes no difference whether it ended by itself or was killed.

// usedName is the file that marks a directory in which everything was created once: the remains of an interrupted
// first start are no damage.
const usedName = "prerig.used"

func isUsed(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, usedName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("checking whether the queue was used before: %w", err)
	}
	return true, nil
}

func markDirectoryUsed(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, usedName), nil, 0o600); err != nil {
		return fmt.Errorf("noting that the queue is used: %w", err)
	}
	return nil
}

// listStreamFiles lists files in the directories of all streams.
func listStreamFiles(dir, pattern string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", filepath.FromSlash(pattern)))
	if err != nil {
		return nil, fmt.Errorf("listing what is left of the last server: %w", err)
	}
	return found, nil
}

// forgetDeliveries removes the last server's records other than messages. It removes those of deliveries in
// progress: they start over, and a damaged file would keep the server from creating the consumer. It also removes
// the indexes: the server writes them only periodically and on shutdown, so that after a kill they name messages
// that were removed since, which would count as lost; and an index that is up to date would keep the server from
// checking its messages.
func forgetDeliveries(dir string) error {
	for _, pattern := range []string{"obs/*", "msgs/index.db"} {
		known, err := listStreamFiles(dir, pattern)
		if err != nil {
			return err
		}
		for _, name := range known {
			if err := os.RemoveAll(name); err != nil {
				return fmt.Errorf("removing what is left of the last server: %w", err)
			}
		}
	}
	return nil
}

// emptyStreams returns the streams with a file of messages that has become empty, which the server mistakes for one
// that was never written. The last file of a stream may be empty.
func emptyStreams(dir string) ([]string, error) {
	blocks, err := listStreamFiles(dir, "msgs/*.blk")
	if err != nil {
		return nil, err
	}
	last := map[string]int{}
	for _, block := range blocks {
		stream, number := blockOf(block)
		last[stream] = max(last[stream], number)
	}
	var out []string
	for _, block := range blocks {
		stream, number := blockOf(block)
		info, err := os.Stat(block)
		if err != nil {
			return nil, fmt.Errorf("looking at what is left of the last server: %w", err)
		}
		if info.Size() == 0 && number < last[stream] && !slices.Contains(out, stream) {
			out = append(out, stream)
		}
	}
	return out, nil
}

// blockOf reads the path STREAM/msgs/NUMBER.blk.
func blockOf(path string) (stream string, number int) {
	number, _ = strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
	return filepath.Base(filepath.Dir(filepath.Dir(path))), number
}
