// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// temporaryName returns the name of a file that is not complete yet: its final name, the place where its process
// runs, the process, and a number. It is hidden, so that it is not mistaken for a manifest when a crash leaves it
// behind.
func temporaryName(base string, n int) string {
	if len(base) > 200 {
		base = strings.ToValidUTF8(base[:200], "") // with what is added, it must not be longer than a name can be
	}
	return fmt.Sprintf(".%s.prerig-%s-%d-%d", base, here(), os.Getpid(), n)
}

// temporary matches such a name. Earlier versions did not include the place where the process runs.
var temporary = lazyregexp.New(`^\..+\.prerig-(?:([0-9a-f]{8})-)?(\d+)-\d+$`)

// here identifies the place in which process numbers are unique: a host, or a container on it.
var here = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	space, _ := os.Readlink("/proc/self/ns/pid") // empty on systems without namespaces
	sum := sha256.Sum256([]byte(host + "\x00" + space))
	return hex.EncodeToString(sum[:4])
})

// recordLeftoverFile notes a hidden file that looks as if a run had not come to its end.
func (r *fileReader) recordLeftoverFile(path string) {
	if temporary.MatchString(filepath.Base(path)) {
		r.Leftovers = append(r.Leftovers, path)
	}
}

// recordLeftoversOf notes those of a file that was named itself.
func (r *fileReader) recordLeftoversOf(path string) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the file can be read all the same
	}
	prefix := strings.TrimSuffix(temporaryName(base, 0), fmt.Sprintf("%s-%d-0", here(), os.Getpid()))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			r.recordLeftoverFile(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// Clean removes the temporary files whose process has certainly ended: one of this host and, if it runs in one, of
// this container, and of the same user. kept are the others, whose process may still be running. A file that no
// longer exists is in neither list. The error is about files that could not be removed.
func Clean(leftovers []string) (removed, kept []string, err error) {
	var errs []error
	for _, path := range leftovers {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil || !info.Mode().IsRegular() || !isAbandoned(info):
			kept = append(kept, path)
			continue
		}
		if err := os.Remove(path); err != nil {
			errs = append(errs, fmt.Errorf("removing %s, which an interrupted run left behind: %w", path, innerError(err)))
			continue
		}
		removed = append(removed, path)
	}
	return removed, kept, errors.Join(errs...)
}

// isAbandoned reports whether the process that was writing a temporary file has certainly ended.
func isAbandoned(info fs.FileInfo) bool {
	parts := temporary.FindStringSubmatch(info.Name())
	if parts == nil || parts[1] != here() || !isOurs(info) {
		return false
	}
	pid, err := strconv.Atoi(parts[2])
	return err == nil && isGone(pid)
}
