// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type house struct {
	Name    string            `json:"name" loose:"name"`
	Rooms   []room            `json:"rooms,omitempty" loose:"rooms"`
	Colours map[string]string `json:"colours,omitempty" loose:"-"`
	Built   *metav1.Duration  `json:"built,omitempty" loose:"-"`
	Extra   any               `json:"extra,omitempty" loose:"-"`
	Notes   notes             `json:"notes,omitempty" loose:"-"`
	Status  status            `json:"status,omitempty" loose:"-"`
	Wait    time.Duration     `json:"-" loose:"wait"`
	Tags    []string          `json:"tags,omitempty" loose:"tags"`
	Height  float64           `json:"height,omitempty" loose:"height"`
	Open    bool              `json:"open,omitempty" loose:"open"`
}

type room struct {
	Doors int    `json:"doors,omitempty" loose:"doors"`
	Kind  string `json:"kind" loose:"kind"`
}

type notes struct {
	Text string `json:"text,omitempty"`
}

type status struct {
	Ready bool `json:"ready,omitempty"`
}

var strictly = Decoder{
	Enums: map[string][]string{"room.Kind": {"Kitchen", "Cellar"}, "house.Colours": {"red", "blue"}},
	Open:  []string{"notes"}, Ignored: []string{"status"},
}

// read decodes a text and returns what is wrong with it, one line each.
func read(t *testing.T, d Decoder, text string) (house, string) {
	t.Helper()
	doc, err := ReadOne([]byte(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ps := Problems{List: doc.Duplicates(nil)}
	var out house
	d.Decode(nil, doc.Value, &out, &ps)
	ps.Locate(doc)
	lines := make([]string, len(ps.List))
	for i, p := range ps.List {
		lines[i] = p.String()
	}
	return out, strings.Join(lines, "\n")
}

func TestDecode(t *testing.T) {
	got, wrong := read(t, strictly, `
name: a
rooms:
- {doors: 2, kind: Kitchen}
- {doors: 1.0, kind: Cellar}
colours: {roof: red}
built: 5m
extra: {any: [1]}
notes: {text: b, more: {c: 1}, gone: null}
status: 3
height: 4
open: true
`)
	want := house{
		Name: "a", Rooms: []room{{2, "Kitchen"}, {1, "Cellar"}}, Colours: map[string]string{"roof": "red"}, Built: &metav1.Duration{Duration: 5 * time.Minute},
		Extra: map[string]any{"any": []any{int64(1)}}, Notes: notes{Text: "b"}, Height: 4, Open: true,
	}
	if diff := cmp.Diff(want, got); diff != "" || wrong != "" {
		t.Errorf("problems %q, (-want +got)\n%s", wrong, diff)
	}
}

func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"missing":        {"rooms: []", "name: is required"},
		"unknown":        {"name: a\nrums: []", "line 2: rums: unknown field, did you mean rooms?"},
		"quite unknown":  {"name: a\nx: []", "line 2: x: unknown field; known fields are built, colours, extra, height, name, notes, open, rooms, status, tags"},
		"not indented":   {"name: a\ntext: b", "line 2: text: unknown field, did you mean notes.text?"},
		"deep":           {"name: a\nrooms:\n- kind: Kitchen\n  doors: two", `line 4: rooms[0].doors: must be a whole number, is the text "two"`},
		"enum":           {"name: a\nrooms: [{kind: kitchen}]", `line 2: rooms[0].kind: "kitchen" is not one of Kitchen, Cellar, did you mean Kitchen?`},
		"enum of a map":  {"name: a\ncolours: {wall: green}", `line 2: colours.wall: "green" is not one of red, blue`},
		"number as text": {"name: 5", "line 1: name: must be a string, is 5; put it in quotes"},
		"fraction":       {"name: a\nrooms: [{kind: Cellar, doors: 1.5}]", "line 2: rooms[0].doors: must be a whole number, is 1.5"},
		"null":           {"name: null", "line 1: name: has no value; it must be a string, or remove the key"},
		"time":           {"name: a\nbuilt: 10", "line 2: built: must be a time with its unit, such as 5m, is 10"},
		"twice":          {"name: a\nname: b", "line 2: name: is given twice, first in line 1"},
		"all of them":    {"name: [a]\nrooms: 3\nopen: 1", "line 1: name: must be a string, is a list\nline 2: rooms: must be a list, is 3\nline 3: open: must be true or false, is 1"},
		"in an alias":    {"name: a\nextra: &x {doors: b, kind: Cellar}\nrooms: [*x]", `line 2: rooms[0].doors: must be a whole number, is the text "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := read(t, strictly, tc.text); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestLoose(t *testing.T) {
	loosely := Decoder{Tag: "loose", Optional: true, NullIsUnset: true, Loose: true}
	got, wrong := read(t, loosely, "NAME: 5\nwait: 5s\ntags: a,b\nheight: \"1.5\"\nopen: \"true\"\nrooms: [{doors: \"0x10\"}, null]\n")
	want := house{Name: "5", Wait: 5 * time.Second, Tags: []string{"a", "b"}, Height: 1.5, Open: true, Rooms: []room{{Doors: 16}, {}}}
	if diff := cmp.Diff(want, got); diff != "" || wrong != "" {
		t.Errorf("problems %q, (-want +got)\n%s", wrong, diff)
	}
	if _, wrong = read(t, loosely, "open: perhaps\nwait: soon"); wrong != "line 1: open: must be true or false, is the text \"perhaps\"\nline 2: wait: must be a time with its unit, such as 5m, is the text \"soon\"" {
		t.Errorf("got %s", wrong)
	}
}

func TestDistance(t *testing.T) {
	for words, want := range map[[2]string]int{{"", "abc"}: 3, {"kind", "kind"}: 0, {"kidn", "kind"}: 1, {"gti", "git"}: 1, {"ca", "abc"}: 3, {"rums", "rooms"}: 2} {
		if got := Distance(words[0], words[1]); got != want {
			t.Errorf("%q: got %d, want %d", words, got, want)
		}
	}
}

// FuzzDecode finds nothing that makes it panic, and decodes what it wrote itself without a problem.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: a\nrooms: [{doors: 1, kind: Cellar}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("<<: {name: b}\nname: c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := ReadAll(data, 1<<16)
		if err != nil {
			return
		}
		for _, doc := range docs {
			ps := Problems{List: append(doc.Duplicates(nil), doc.Aliases()...)}
			var out house
			strictly.Decode(nil, doc.Value, &out, &ps)
			ps.Locate(doc)
			for _, p := range ps.List {
				if p.Message == "" || p.String() == "" {
					t.Errorf("a problem without words at %v", p.Path)
				}
			}
			var again house
			strictly.Decode(nil, doc.Value, &again, &Problems{})
			if !reflect.DeepEqual(out, again) {
				t.Errorf("decoded twice: %+v and %+v", out, again)
			}
		}
	})
}
