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

// What the last process has left is taken from the files that were written before anything was acknowledged, and from
// nothing else. Whether it ended by itself or was killed then makes no difference.

// usedName is the file that says that everything in the directory was made once: what a first start leaves that was
// interrupted is no damage.
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

func noteUse(dir string) error {
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

// forgetDeliveries removes what the last server knew beside its messages. About deliveries under way: they are begun anew, and a
// file of it that was damaged would keep the server from making the consumer. And its indexes: it writes them from time to
// time only, and when it is shut down, so that after a kill they name messages that were removed since, which would be taken
// for lost; and one that is up to date would keep it from looking at its messages.
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

// emptyStreams returns the streams with a file of messages that has become empty, which the server takes for one that was never
// written. The last file of a stream may be.
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
