// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// question is what a build asked of its files, and a digest of the answer.
type question struct {
	Op   tree.Op `json:"op"`
	Path string  `json:"path"`
	Sum  string  `json:"sum"`
}

// asking is a question without its answer.
type asking struct {
	op   tree.Op
	path string
}

// answer is what there is at a path.
type answer struct {
	info    tree.Info
	content []byte
	list    []tree.Info
	err     error
}

// sum is a digest of all that can be seen of an answer.
func (a answer) sum() string {
	h := sha256.New()
	switch {
	case errors.Is(a.err, fs.ErrNotExist):
		fmt.Fprintf(h, "none %s", a.err)
	case a.err != nil:
		fmt.Fprintf(h, "error %s", a.err)
	case a.list != nil:
		text, err := json.Marshal(a.list)
		if err != nil {
			panic(err) // it is plain data
		}
		fmt.Fprintf(h, "list %s", text)
		for _, info := range a.list {
			fmt.Fprintf(h, "%q", info.Path) // JSON has no way to write a name that is not UTF-8
		}
	case a.content != nil:
		h.Write([]byte("content "))
		h.Write(a.content)
	default:
		fmt.Fprintf(h, "info %q %t %t", a.info.Path, a.info.Dir, a.info.Exec)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// askedFiles notes the questions that are asked of files. What was asked while a remembered build was looked for is asked no second
// time: it counts once for the limits of the render.
type askedFiles struct {
	files tree.Reader

	mu      sync.Mutex
	sums    map[asking]string
	ready   map[asking]answer // was asked in advance
	order   []question
	noted   map[asking]bool
	stopped bool
	// overflowed says that there were too many to note.
	overflowed bool
}

func newAskedFiles(files tree.Reader) *askedFiles {
	return &askedFiles{files: files, sums: map[asking]string{}, ready: map[asking]answer{}, noted: map[asking]bool{}}
}

// maxQuestions bounds what is noted. A build that asks more is not kept.
const maxQuestions = 200_000

// look asks.
func (f *askedFiles) look(q asking) answer {
	var a answer
	switch q.op {
	case tree.OpRead:
		if a.content, a.err = f.files.Read(q.path); a.content == nil {
			a.content = []byte{}
		}
	case tree.OpList:
		if a.list, a.err = f.files.List(q.path); a.list == nil {
			a.list = []tree.Info{}
		}
	default:
		a.info, a.err = f.files.Lookup(q.path)
	}
	return a
}

// ask asks for the renderer.
func (f *askedFiles) ask(q asking) answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.ready[q]
	if !ok {
		a = f.look(q)
	}
	delete(f.ready, q)
	if len(f.order) >= maxQuestions {
		f.stopped, f.overflowed = true, true
	}
	if !f.stopped && !f.noted[q] {
		f.noted[q] = true
		if _, known := f.sums[q]; !known {
			f.sums[q] = a.sum()
		}
		f.order = append(f.order, question{q.op, q.path, f.sums[q]})
	}
	return a
}

// holds reports whether the answers to questions are those that are known of them. It stops at the first that is another one: the
// build that is looked for would not have asked any further.
func (f *askedFiles) holds(questions []question) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range questions {
		q := asking{one.Op, one.Path}
		sum, known := f.sums[q]
		if !known {
			a := f.look(q)
			sum = a.sum()
			f.sums[q], f.ready[q] = sum, a
		}
		if sum != one.Sum {
			return false
		}
	}
	return true
}

// stop ends the notes.
func (f *askedFiles) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// questions returns what was asked until the notes ended, in order.
func (f *askedFiles) questions() []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.overflowed {
		return nil
	}
	return f.order
}

// Lookup implements tree.Reader.
func (f *askedFiles) Lookup(name string) (tree.Info, error) {
	a := f.ask(asking{tree.OpLookup, name})
	return a.info, a.err
}

// Read implements tree.Reader.
func (f *askedFiles) Read(name string) ([]byte, error) {
	a := f.ask(asking{tree.OpRead, name})
	return a.content, a.err
}

// List implements tree.Reader.
func (f *askedFiles) List(name string) ([]tree.Info, error) {
	a := f.ask(asking{tree.OpList, name})
	return a.list, a.err
}
