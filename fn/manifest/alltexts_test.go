// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"strconv"
	"testing"
)

// frames are what the short texts stand in: a document, values of block and of flow collections, at two depths.
var frames = []struct{ name, before, after string }{
	{"document", "", ""},
	{"value", "k: ", ""},
	{"entry", "k:\n- ", ""},
	{"flow", "k: [", "]"},
	{"nested", "- - ", ""},
	{"nested flow", "k:\n  j: {", "}"},
}

// pieces are what the short texts are made of.
var pieces = map[string][]string{
	"indicators": {"a", ":", " ", "\t", "\n", "[", "]", "{", "}", ",", "-", "#", `"`, "'"},
	"nodes": {
		"a", ": ", "\n", "\n  ", "- ", "&b ", "*b", "[", "]", ",", "|", ">", "---\n", "#", " ", "!!str ", "? ", `"`, "...", "%", `\`, "<<", "!", "1",
		"\t", "null",
	},
	"keys": {
		"kind", "apiVersion", "metadata", "name", "metadata:\n  name", "metadata:\n  namespace", "kind: List\nitems",
		": a\n", " : a\n", "\t: a\n", " :\n  name: a\n", " :\n- a: b\n", " ", "#",
	},
}

// forEachText calls f with each text of at most n of the pieces, in each frame; of one less with -short. PRERIG_TEXTS=4 makes n 4, which
// takes minutes.
func forEachText(t *testing.T, n int, f func(t *testing.T, src string)) {
	t.Helper()
	if testing.Short() {
		n--
	}
	if s := os.Getenv("PRERIG_TEXTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	var extend func(t *testing.T, before, text, after string, from []string, left int)
	extend = func(t *testing.T, before, text, after string, from []string, left int) {
		t.Helper()
		f(t, before+text+after)
		if left == 0 || t.Failed() {
			return
		}
		for _, p := range from {
			extend(t, before, text+p, after, from, left-1)
		}
	}
	for name, from := range pieces {
		for _, frame := range frames {
			t.Run(name+"/"+frame.name, func(t *testing.T) {
				t.Parallel()
				extend(t, frame.before, "", frame.after, from, n)
			})
		}
	}
}

// What is read of every short text is what Kubernetes reads of it.
func TestAllShortTextsDecode(t *testing.T) {
	t.Parallel()
	forEachText(t, 3, func(t *testing.T, src string) {
		t.Helper()
		checkDecode(t, []byte(src))
	})
}

// What a document peeks at, and an edit of it, agree with what the whole decodes to, for every short text.
func TestAllShortTextsEdit(t *testing.T) {
	t.Parallel()
	forEachText(t, 3, func(t *testing.T, src string) {
		t.Helper()
		checkSplit(t, []byte(src))
		for seed := range int64(3) {
			checkEdit(t, []byte(src), seed)
		}
	})
}
