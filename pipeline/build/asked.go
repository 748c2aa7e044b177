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

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// question is what a build asked of its files, and a digest of the answer.
type question struct {
	tree.Question
	Sum string `json:"sum"`
}

// answerDigest is a digest of all that can be seen of an answer.
func answerDigest(a tree.Answer) string {
	h := sha256.New()
	switch {
	case errors.Is(a.Err, fs.ErrNotExist):
		fmt.Fprintf(h, "none %s", a.Err)
	case a.Err != nil:
		fmt.Fprintf(h, "error %s", a.Err)
	case a.List != nil:
		text, err := json.Marshal(a.List)
		if err != nil {
			panic(err) // it is plain data
		}
		fmt.Fprintf(h, "list %s", text)
		for _, info := range a.List {
			fmt.Fprintf(h, "%q", info.Path) // JSON has no way to write a name that is not UTF-8
		}
	case a.Content != nil:
		h.Write([]byte("content "))
		h.Write(a.Content)
	default:
		fmt.Fprintf(h, "info %q %t %t", a.Info.Path, a.Info.Dir, a.Info.Exec)
	}
	return hex.EncodeToString(h.Sum(nil))
}

var _ render.Notes = (*askedFiles)(nil)

// askedFiles notes the questions that are asked of files. What was asked while a remembered build was looked for is asked no second
// time: it counts once for the limits of the render.
type askedFiles struct {
	files tree.Reader

	mu      sync.Mutex
	sums    map[tree.Question]string
	ready   map[tree.Question]tree.Answer // was asked in advance
	order   []question
	noted   map[tree.Question]bool
	stopped bool
	// overflowed reports whether too many questions were asked to note all of them.
	overflowed bool
}

func newAskedFiles(files tree.Reader) *askedFiles {
	return &askedFiles{files: files, sums: map[tree.Question]string{}, ready: map[tree.Question]tree.Answer{}}
}

// maxQuestions bounds what is noted. A build that asks more is not kept.
const maxQuestions = 200_000

// answerRendererQuestion asks for the renderer.
func (f *askedFiles) answerRendererQuestion(q tree.Question) tree.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.ready[q]
	if !ok {
		a = q.Ask(f.files)
	}
	delete(f.ready, q)
	return a
}

// Begin implements render.Notes.
func (f *askedFiles) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order, f.noted, f.stopped, f.overflowed = nil, map[tree.Question]bool{}, false, false
}

// Note implements render.Notes.
func (f *askedFiles) Note(q tree.Question, a tree.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) >= maxQuestions {
		f.stopped, f.overflowed = true, true
	}
	if f.stopped || f.noted[q] {
		return
	}
	f.noted[q] = true
	if _, known := f.sums[q]; !known {
		f.sums[q] = answerDigest(a)
	}
	f.order = append(f.order, question{q, f.sums[q]})
}

// End implements render.Notes.
func (f *askedFiles) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// answersUnchanged reports whether the answers to questions are those that are known of them. It stops at the first
// that is another one: the build that is looked for would not have asked any further.
func (f *askedFiles) answersUnchanged(questions []question) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range questions {
		q := one.Question
		sum, known := f.sums[q]
		if !known {
			a := q.Ask(f.files)
			sum = answerDigest(a)
			f.sums[q], f.ready[q] = sum, a
		}
		if sum != one.Sum {
			return false
		}
	}
	return true
}

// recordedQuestions returns what was asked until the notes ended, in order.
func (f *askedFiles) recordedQuestions() []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.overflowed {
		return nil
	}
	return f.order
}
