// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// lazyFile opens a file when it is first read, as opening a named pipe waits for who writes into it, and closes it at
// its end.
type lazyFile struct {
	path string
	file *os.File
}

// Read reads from the file.
func (l *lazyFile) Read(p []byte) (int, error) {
	if l.file == nil {
		var err error
		if l.file, err = os.Open(l.path); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Read(p)
	if err != nil {
		l.file.Close()
	}
	return n, err
}

// errLarge means that a file is not read because it is too large.
var errLarge = fmt.Errorf("it is larger than %d MiB, the size limit for one file; split it", MaxSize>>20)

// readAll reads to the end, or until the context ends: a pipe may block forever.
func (r *fileReader) readAll(in io.Reader) ([]byte, error) {
	type content struct {
		data []byte
		err  error
	}
	read := make(chan content, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
		if err == nil && len(data) > MaxSize {
			data, err = data[:0], errLarge
		}
		read <- content{data, err}
	}()
	select {
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	case c := <-read:
		return c.data, c.err
	}
}

// readRegular reads the regular file behind in.
func (r *fileReader) readRegular(in Input) {
	if r.seen[in.target] {
		return
	}
	r.seen[in.target] = true
	f, err := openFile(in.target)
	if err != nil {
		r.addError(in.Path, err)
		return
	}
	defer f.Close()
	if in.info, err = f.Stat(); err != nil {
		r.addError(in.Path, err)
		return
	}
	if !in.info.Mode().IsRegular() {
		r.addError(in.Path, specialFileError(in.info.Mode()))
		return
	}
	if in.info.Size() > MaxSize && in.Root != "" {
		head := make([]byte, 64<<10)
		n, _ := io.ReadFull(f, head) // unreadable content is ignored
		r.addPassedFile(Passed{Path: in.Path, Why: Large, Head: head[:n]})
		return
	}
	if in.Data, err = readContents(f, in.info.Size()); err != nil {
		r.addError(in.Path, err)
		return
	}
	if r.done++; r.options.Progress != nil {
		r.options.Progress(r.done, in.Path)
	}
	r.visit(in)
}

// readContents reads a file that is size bytes long, or was a moment ago.
func readContents(f *os.File, size int64) ([]byte, error) {
	if size > MaxSize {
		return nil, errLarge
	}
	data := make([]byte, 0, size+1) // with room to see the end
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) > MaxSize:
			return nil, errLarge
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}
