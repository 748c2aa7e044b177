// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Output is a file to write.
type Output struct {
	// Path as it is named in messages.
	Path string
	// Data is the new content.
	Data []byte

	in     place       // where the target is
	target string      // the file to replace
	was    fs.FileInfo // what it was when it was read; nil where it need not exist
	before []byte
}

// InPlace is the output that replaces the input's own content. The file keeps its mode, its owner where the system lets
// us, and the symbolic links that lead to it.
func InPlace(in Input, data []byte) (Output, error) {
	if in.Stdin() {
		return Output{}, errors.New("writing in place: standard input is not a file")
	}
	if !in.info.Mode().IsRegular() {
		return Output{}, fmt.Errorf("writing %s in place: it is not a regular file", in.Path)
	}
	if in.info.Mode().Perm()&0o222 == 0 {
		return Output{}, fmt.Errorf("writing %s in place: the file is read-only (mode %#o)", in.Path, in.info.Mode().Perm())
	}
	return Output{Path: in.Path, Data: data, in: wholeSystem{}, target: in.target, was: in.info, before: in.Data}, nil
}

// To is the output that makes the file path, or replaces it.
func To(path string, data []byte) (Output, error) {
	out := Output{Path: path, Data: data, in: wholeSystem{}, target: path}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, out.checkNew()
	}
	if err != nil {
		return Output{}, fmt.Errorf("writing %s: %w", path, innerError(err))
	}
	out.target = target
	return out.readTarget()
}

// checkNew refuses a link to what does not exist as the place of a new file.
func (o Output) checkNew() error {
	if _, err := o.in.Lstat(o.target); err == nil {
		return fmt.Errorf("writing %s: it is a broken symbolic link", o.Path)
	}
	return nil
}

// readTarget returns the output with what its target is now.
func (o Output) readTarget() (Output, error) {
	info, err := o.in.Stat(o.target)
	switch {
	case err != nil:
		return Output{}, fmt.Errorf("writing %s: %w", o.Path, innerError(err))
	case info.IsDir():
		return Output{}, fmt.Errorf("writing %s: it is a directory", o.Path)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o222 == 0:
		return Output{}, fmt.Errorf("writing %s: the file is read-only (mode %#o)", o.Path, info.Mode().Perm())
	}
	o.was = info
	if info.Mode().IsRegular() {
		if o.before, err = o.in.ReadFile(o.target); err != nil {
			return Output{}, fmt.Errorf("writing %s: %w", o.Path, innerError(err))
		}
	}
	return o, nil
}

// Write writes all outputs or none: each is written to a new file beside its target and flushed to the disk, and
// only when that has succeeded for all of them are they renamed. When one cannot be renamed, those before it are
// rolled back. A target that changed since it was read is an error. Missing directories are created. progress,
// which may be nil, is called for every file that is ready.
func Write(ctx context.Context, outs []Output, progress func(done int)) error {
	staged, err := stageAll(ctx, outs, progress)
	defer func() {
		for i, tmp := range staged {
			if tmp != "" {
				outs[i].in.Remove(tmp)
			}
		}
	}()
	if err != nil {
		return err
	}
	for i, out := range outs {
		if err := renameStaged(staged[i], out); err != nil {
			if undo := restorePreviousFiles(outs[:i]); undo != nil {
				return fmt.Errorf("writing %s: %w; restoring the files written before it: %w", out.Path,
					innerError(err), undo)
			}
			return fmt.Errorf("writing %s: %w; nothing was written", out.Path, innerError(err))
		}
		staged[i] = ""
	}
	return syncDirectories(outs)
}

// stagedAtOnce is how many files are written at the same time: each waits for the disk, most of its time.
const stagedAtOnce = 16

// stageAll stages all outputs, and returns the names of those that are staged even when one has failed. The error
// is that of the first output that failed.
func stageAll(ctx context.Context, outs []Output, progress func(done int)) ([]string, error) {
	staged := make([]string, len(outs))
	errs := make([]error, len(outs))
	var group errgroup.Group
	group.SetLimit(stagedAtOnce)
	var mu sync.Mutex
	done, failed := 0, false
	for i, out := range outs {
		group.Go(func() error {
			mu.Lock()
			stop := failed
			mu.Unlock()
			if stop {
				return nil
			}
			err := ctx.Err()
			if err == nil {
				staged[i], err = stageFile(out, out.Data)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[i], failed = fmt.Errorf("writing %s: %w; nothing was written", out.Path, innerError(err)), true
				return nil
			}
			if done++; progress != nil {
				progress(done)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are kept in order
	for _, err := range errs {
		if err != nil {
			return staged, err
		}
	}
	return staged, nil
}

// isSpecial reports whether the target is a device or a pipe, which cannot be replaced, only written to.
func (o Output) isSpecial() bool { return o.was != nil && !o.was.Mode().IsRegular() }

// stageFile writes data into a new file beside the target and returns its name.
func stageFile(out Output, data []byte) (name string, err error) {
	if out.isSpecial() {
		return "", nil
	}
	dir := filepath.Dir(out.target)
	if out.was == nil {
		if err := out.in.MkdirAll(dir, 0o777); err != nil {
			return "", err
		}
	}
	f, tmp, err := createTemp(out.in, dir, filepath.Base(out.target))
	if err != nil {
		return "", err
	}
	defer func() {
		cerr := f.Close()
		if err == nil {
			err = cerr
		}
		if err != nil {
			out.in.Remove(tmp)
			name = ""
		}
	}()
	if out.was != nil {
		keepOwner(f, out.was)
		if err := f.Chmod(out.was.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
			return "", err
		}
	}
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	return tmp, f.Sync()
}

// createTemp creates a new file with the default mode of the process.
func createTemp(in place, dir, base string) (f *os.File, name string, err error) {
	for i := 0; ; i++ {
		name = filepath.Join(dir, temporaryName(base, i))
		f, err = in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
}

// renameStaged renames the staged file to its target.
func renameStaged(staged string, out Output) error {
	if out.isSpecial() {
		return out.in.WriteFile(out.target, out.Data, 0)
	}
	if out.was != nil {
		now, err := out.in.Stat(out.target)
		if err != nil {
			return err
		}
		if now.Size() != out.was.Size() || !now.ModTime().Equal(out.was.ModTime()) || !os.SameFile(now, out.was) {
			return errors.New("the file changed during the run; run the command again")
		}
	}
	if out.was == nil {
		if _, err := out.in.Lstat(out.target); err == nil {
			return errors.New("the file was created by someone else in the meantime; run the command again")
		}
	}
	return out.in.Rename(staged, out.target)
}

// restorePreviousFiles restores the previous files.
func restorePreviousFiles(outs []Output) error {
	var errs []error
	for _, out := range outs {
		if out.isSpecial() {
			continue
		}
		if out.was == nil {
			errs = append(errs, out.in.Remove(out.target))
			continue
		}
		tmp, err := stageFile(out, out.before)
		if err == nil {
			err = out.in.Rename(tmp, out.target)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// syncDirectories makes the new names last.
func syncDirectories(outs []Output) error {
	type directory struct {
		in   place
		path string
	}
	done := map[directory]bool{}
	for _, out := range outs {
		dir := directory{out.in, filepath.Dir(out.target)}
		if done[dir] || out.isSpecial() {
			continue
		}
		done[dir] = true
		if err := syncDirectory(dir.in, dir.path); err != nil {
			return fmt.Errorf("writing %s: flushing the directory: %w", out.Path, innerError(err))
		}
	}
	return nil
}
