// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/cputime"
	"github.com/prerig/prerig/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// examples returns the policies of a directory by name.
func examples(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples in %s: %v", dir, err)
	}
	out := map[string][]byte{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(p), ".yaml")] = data
	}
	return out
}

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.InjectionPolicy))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid asks the schema. An error means that the text is not YAML, or that the schema refuses it.
func valid(s *jsonschema.Schema, data []byte) error {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// TestAccept reads good policies, holds them against the schema, and reads back what Marshal writes of them.
func TestAccept(t *testing.T) {
	s := schema(t)
	for name, data := range examples(t, "accept") {
		t.Run(name, func(t *testing.T) {
			p, err := v1alpha1.Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			wantRefused := bytes.HasPrefix(data, []byte("# schema refuses: "))
			if err := valid(s, data); (err != nil) != wantRefused {
				t.Errorf("the schema says: %v", err)
			}
			text, err := v1alpha1.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if p.APIVersion == v1alpha1.APIVersion {
				if err := valid(s, text); err != nil {
					t.Errorf("the schema refuses what Marshal wrote: %v\n%s", err, text)
				}
			}
			again, err := v1alpha1.Parse(text)
			if err != nil {
				t.Fatalf("reading what was written: %v\n%s", err, text)
			}
			if diff := cmp.Diff(p, again); diff != "" {
				t.Errorf("written and read (-want +got)\n%s\n%s", diff, text)
			}
			golden(t, filepath.Join("testdata", "accept", name+".golden"), text)
		})
	}
	stale(t, "accept", ".golden")
}

// TestRefuse compares the messages for bad policies with the golden files beside them.
func TestRefuse(t *testing.T) {
	s := schema(t)
	for name, data := range examples(t, "refuse") {
		t.Run(name, func(t *testing.T) {
			_, err := v1alpha1.Parse(data)
			if err == nil {
				t.Fatal("it was accepted")
			}
			wantAccepted := bytes.HasPrefix(data, []byte("# schema accepts: ")) && !bytes.Contains(data, []byte("kind: ConfigMap\nmetadata: {name: function-input}"))
			if err := valid(s, data); (err == nil) != wantAccepted {
				t.Errorf("the schema says: %v", err)
			}
			lines := []string{err.Error()}
			var policy *v1alpha1.PolicyError
			if errors.As(err, &policy) {
				lines = nil
				for _, p := range policy.Problems {
					lines = append(lines, p.String())
				}
			}
			golden(t, filepath.Join("testdata", "refuse", name+".errors"), []byte(strings.Join(lines, "\n")+"\n"))
		})
	}
	stale(t, "refuse", ".errors")
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", path, diff)
	}
}

// stale fails for a golden file whose example is gone.
func stale(t *testing.T, dir, suffix string) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join("testdata", dir, "*"+suffix))
	for _, p := range paths {
		if _, err := os.Stat(strings.TrimSuffix(p, suffix) + ".yaml"); err != nil {
			t.Errorf("%s has no example", p)
		}
	}
}

// TestFromObject gives the same policy as Parse, and problems without lines.
func TestFromObject(t *testing.T) {
	for name, data := range examples(t, "accept") {
		var obj map[string]any
		asJSON, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := utiljson.Unmarshal(asJSON, &obj); err != nil {
			t.Fatal(err)
		}
		got, err := v1alpha1.FromObject(obj)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := v1alpha1.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	_, err := v1alpha1.FromObject(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"istio": map[string]any{"revision": int64(3)}}})
	if want := `reading InjectionPolicy "a": spec.istio.revision: must be a string, is 3; put it in quotes`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, obj := range []map[string]any{nil, {}, {"kind": int64(3)}} {
		if _, err := v1alpha1.FromObject(obj); err == nil {
			t.Errorf("%v was accepted", obj)
		}
	}
}

// TestFromLocated takes the lines from a document among others.
func TestFromLocated(t *testing.T) {
	f, err := manifest.Parse("policies.yaml", []byte("a: b\n---\napiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n  istio:\n    revison: a\n    revisionTags: [b, 3]\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = v1alpha1.FromLocated(f.Docs[1])
	want := `reading InjectionPolicy "mesh": line 8: spec.istio.revison: unknown field, did you mean revision?; line 9: spec.istio.revisionTags[1]: must be a string, is 3; put it in quotes`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDefaults(t *testing.T) {
	p, err := v1alpha1.Parse([]byte("{apiVersion: prerig.dev/v1alpha1, kind: InjectionPolicy, metadata: {name: a}, spec: {istio: {}, images: {}}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.InjectionPolicySpec{
		Mode: v1alpha1.ModeInject, Record: v1alpha1.RecordWorkload, Images: &v1alpha1.Images{Scope: v1alpha1.ScopeInjected, OnMissing: "Ignore"},
		Istio: &v1alpha1.Istio{NativeSidecars: v1alpha1.NativeSidecarsAuto, Admission: v1alpha1.AdmissionDefaulted, RuntimeWebhook: v1alpha1.RuntimeWebhookKeep},
	}
	if diff := cmp.Diff(want, p.Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTooBig(t *testing.T) {
	data := append([]byte("apiVersion: prerig.dev/v1alpha1\n#"), bytes.Repeat([]byte("x"), v1alpha1.MaxBytes)...)
	if _, err := v1alpha1.Parse(data); err == nil || !strings.Contains(err.Error(), "more than the 16777216") {
		t.Errorf("got %v", err)
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: a}\nspec:\n  istio:\n    injector:\n      overrides:\n        a0: &a0 [x]\n")
	for i := 1; i < 40; i++ {
		ref := "*a" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		if i == 1 {
			ref = "*a0"
		}
		name := "a" + string(rune('0'+i/10)) + string(rune('0'+i%10))
		b.WriteString("        " + name + ": &" + name + " [" + strings.Repeat(ref+", ", 9) + ref + "]\n")
	}
	if _, err := v1alpha1.Parse([]byte(b.String())); err == nil {
		t.Error("an alias bomb was read")
	}
}

// FuzzParse looks for panics, and for policies that do not read back as they were written.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"accept", "refuse"} {
		for _, data := range examples(f, dir) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := cputime.Begin(t)
		defer func() { end(30 * time.Second) }()
		p, err := v1alpha1.Parse(data)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without a message")
			}
			return
		}
		text, err := v1alpha1.Marshal(p)
		if err != nil {
			t.Fatalf("writing: %v", err)
		}
		again, err := v1alpha1.Parse(text)
		if err != nil {
			t.Fatalf("reading back: %v\n%s", err, text)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("(-want +got)\n%s\n%s", diff, text)
		}
	})
}
