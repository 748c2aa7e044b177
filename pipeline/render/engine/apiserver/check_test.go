// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// wanted is how a line of a case says what is found there: "# finds CODE: a part of the message".
var wanted = regexp.MustCompile(`# finds ([a-z-]+): (.*)$`)

// TestCases checks the objects of each file below testdata/cases. The first line may name the version of Kubernetes.
func TestCases(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for i, line := range strings.Split(string(text), "\n") {
				if m := wanted.FindStringSubmatch(line); m != nil {
					for _, message := range strings.Split(m[2], " | ") {
						want = append(want, fmt.Sprintf("%d %s: %s", i+1, m[1], message))
					}
				}
			}
			version, _ := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "# Kubernetes ")
			found, err := Check(t.Context(), readObjects(t, name, text), gate.Options{KubernetesVersion: strings.TrimPrefix(version, "#")})
			if err != nil {
				t.Fatal(err)
			}
			compareFindings(t, found, want)
			objects := readObjects(t, name, text)
			for i := range objects {
				objects[i].File, objects[i].Line = nil, nil
			}
			without, err := Check(t.Context(), objects, gate.Options{KubernetesVersion: strings.TrimPrefix(version, "#")})
			if err != nil || len(without) != len(found) {
				t.Errorf("of objects without a file it finds %d, and %d otherwise: %v\n%v", len(without), len(found), err, without)
			}
		})
	}
}

// compareFindings holds findings against lines of the form "LINE CODE: part of the message".
func compareFindings(t *testing.T, found result.Results, want []string) {
	t.Helper()
	var got []string
	for _, r := range found {
		line := fmt.Sprintf("%d %s: ", lineOfResult(r), r.Tags[result.TagCode])
		i := slices.IndexFunc(want, func(w string) bool {
			part, ok := strings.CutPrefix(w, line)
			return ok && strings.Contains(fieldOf(r)+": "+r.Message, part)
		})
		if i >= 0 {
			want = slices.Delete(want, i, i+1)
			continue
		}
		got = append(got, line+fieldOf(r)+": "+r.Message)
	}
	d := cmp.Diff(want, got)
	if len(want)+len(got) > 0 {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func fieldOf(r result.Result) string {
	if r.Field == nil {
		return ""
	}
	return r.Field.Path
}

func readObjects(t *testing.T, name string, text []byte) []gate.Object {
	t.Helper()
	file, err := manifest.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	var out []gate.Object
	for _, doc := range file.Docs {
		objects, err := gate.ReadDocument(doc, doc, name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, objects...)
	}
	return out
}

func TestSeverities(t *testing.T) {
	t.Parallel()
	text := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatta: {}\n")
	for word, want := range map[string]result.Severity{"Warning": result.Warning, "info": result.Info, "Error": result.Error, "Off": ""} {
		s, err := gate.NewSeverities(map[string]string{gate.CodeUnknownField: word})
		if err != nil {
			t.Fatal(err)
		}
		found, err := Check(t.Context(), readObjects(t, "a.yaml", text), gate.Options{Severities: s})
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Worst(); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	for _, wrong := range []map[string]string{{"schema-unknown-fields": "Error"}, {gate.CodeUnknownField: "Loud"}} {
		if _, err := gate.NewSeverities(wrong); err == nil {
			t.Errorf("%v: no error", wrong)
		}
	}
}

// TestSecretsStaySecret looks for the value of a Secret in what is said about it.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	const canary = "8675309"
	text := []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: '" + canary + "!'}\nstringData: {b: " + canary + "}\ntype: 8675309\n")
	found, err := Check(t.Context(), readObjects(t, "a.yaml", text), gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 {
		t.Errorf("want 3 findings, got %v", found)
	}
	for _, r := range found {
		if strings.Contains(r.String(), canary) {
			t.Errorf("the value is in %q", r.String())
		}
	}
}

// TestLinesAreTheUsers reports a container at the line where the user wrote it, though the injection put another one before it.
func TestLinesAreTheUsers(t *testing.T) {
	t.Parallel()
	written := parseOne(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: web\n    image: nginx\n    imagePullPolicy: always\n")
	injected := parseOne(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: istio-proxy\n    imagePullPolicy: sometimes\n"+
		"  - name: web\n    image: nginx\n    imagePullPolicy: always\n")
	objects, err := gate.ReadDocument(injected, written, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Check(t.Context(), objects, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{"5 schema-wrong-value: containers[0].imagePullPolicy", "8 schema-wrong-value: containers[1].imagePullPolicy"})
}

func parseOne(t *testing.T, text string) *manifest.Document {
	t.Helper()
	file, err := manifest.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file.Docs[0]
}
