// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// archives are files NAMESPACE/NAME/SHA256.tar.gz in a directory. No path of it leaves the directory, by links either.
type archives struct{ root *os.Root }

const archiveEnding = ".tar.gz"

// unfinishedPrefix begins the names of archives that are being written.
const unfinishedPrefix = ".unfinished-"

// archiveRule is what a path of an archive looks like: names as Kubernetes has them, and a digest.
var archiveRule = lazyregexp.New(`^([a-z0-9][-a-z0-9.]{0,252})/([a-z0-9][-a-z0-9.]{0,252})/([0-9a-f]{64})\.tar\.gz$`)

func openArchives(dir string) (archives, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return archives{}, fmt.Errorf("making the directory of artifacts: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return archives{}, fmt.Errorf("opening the directory of artifacts: %w", err)
	}
	return archives{root}, nil
}

// pathOf returns where an archive is kept, and its digest as Flux writes it.
func pathOf(o Ref, content []byte) (name, digest string) {
	sum := sha256.Sum256(content)
	digest = digestPrefix + hex.EncodeToString(sum[:])
	return pathFor(o, digest), digest
}

const digestPrefix = "sha256:"

// pathFor returns where the archive with a digest is kept.
func pathFor(o Ref, digest string) string {
	return path.Join(o.Namespace, o.Name, path.Base(strings.TrimPrefix(digest, digestPrefix))+archiveEnding)
}

// verifyArchiveName returns an error if the content of an archive does not match its name.
func (a archives) verifyArchiveName(name string) error {
	_, err := a.readVerifiedArchive(name)
	return err
}

// errDamaged is about a file that is not what was written.
var errDamaged = errors.New("the file is damaged")

// readVerifiedArchive returns an archive whose content matches its name.
func (a archives) readVerifiedArchive(name string) ([]byte, error) {
	parts := archiveRule.FindStringSubmatch(name)
	if parts == nil {
		return nil, fs.ErrNotExist
	}
	content, err := a.root.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != parts[3] {
		return nil, fmt.Errorf("reading %s: %w", name, errDamaged)
	}
	return content, nil
}

// writeArchiveAtomically keeps an archive. What is under the name afterwards is whole, also where this process or the
// machine is killed.
func (a archives) writeArchiveAtomically(name string, content []byte) (err error) {
	if a.verifyArchiveName(name) == nil {
		a.markAsNewest(name)
		return nil
	}
	if err := a.makeDir(path.Dir(name)); err != nil {
		return fmt.Errorf("keeping the artifact: %w", err)
	}
	unfinished := path.Join(path.Dir(name), unfinishedPrefix+path.Base(name))
	defer func() {
		if err != nil {
			_ = a.root.Remove(unfinished) // it may be what has filled the disk
			err = fmt.Errorf("keeping the artifact: %w", err)
		}
	}()
	file, err := a.root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := a.root.Rename(unfinished, name); err != nil {
		return err
	}
	return a.syncDir(path.Dir(name))
}

// makeDir makes the directory of an object, and has it outlive the machine.
func (a archives) makeDir(name string) error {
	if err := a.root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	return errors.Join(a.syncDir("."), a.syncDir(path.Dir(name)))
}

// markAsNewest makes an archive the newest of its object. Where that fails it only looks older than it is.
func (a archives) markAsNewest(name string) {
	now := time.Now()
	_ = a.root.Chtimes(name, now, now)
}

// syncDir has the names in a directory outlive the machine.
func (a archives) syncDir(name string) error {
	dir, err := a.root.Open(name)
	if err != nil {
		return err
	}
	// Some file systems do not support syncing a directory, and return EINVAL.
	if err = dir.Sync(); errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// kept is an archive of an object.
type kept struct {
	path    string
	size    int64
	written time.Time
}

// filesOfObject lists the files of an object, the newest first, those that are unfinished included.
func (a archives) filesOfObject(o Ref) ([]kept, error) {
	entries, err := fs.ReadDir(a.root.FS(), path.Join(o.Namespace, o.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []kept
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, kept{path.Join(o.Namespace, o.Name, e.Name()), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b kept) int {
		if n := b.written.Compare(a.written); n != 0 {
			return n
		}
		return strings.Compare(a.path, b.path)
	})
	return out, nil
}

// removeArchiveFile removes a file, and the directory of its object if that is then empty. The directory of the
// namespace stays: others may be about to create one in it.
func (a archives) removeArchiveFile(name string) error {
	if err := a.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = a.root.Remove(path.Dir(name)) // it stays where it holds more
	return nil
}

// listArchivedObjects lists the objects that have files.
func (a archives) listArchivedObjects() ([]Ref, error) {
	names, err := fs.Glob(a.root.FS(), "*/*")
	var out []Ref
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		out = append(out, Ref{namespace, name})
	}
	return out, err
}

// openByURLPath opens an archive for reading by the path of a URL; it cannot be made to open any other file.
func (a archives) openByURLPath(name string) (io.ReadSeekCloser, time.Time, error) {
	if !archiveRule.MatchString(name) {
		return nil, time.Time{}, fs.ErrNotExist
	}
	file, err := a.root.Open(name)
	if err != nil {
		return nil, time.Time{}, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, time.Time{}, err
	}
	return file, info.ModTime(), nil
}
