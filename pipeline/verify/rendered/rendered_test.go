// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/verify"
)

// repository is a directory that files are committed in, if it has a repository.
type repository struct {
	t   *testing.T
	dir string
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	command.Dir = r.dir
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write writes files; one without content is removed.
func (r repository) write(files map[string]string) {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r repository) commit(subject string, files map[string]string) {
	r.t.Helper()
	r.write(files)
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", subject)
}

func deployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop}
spec: {template: {spec: {containers: [{name: app, image: %s}]}}}
`, name, image)
}

func options(t *testing.T) Options {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Registry: registry, Namespace: "default", MaxCommits: 50}
}

func image(w *verify.Workload) string {
	spec, _ := w.Templates[0]["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	c, _ := containers[0].(map[string]any)
	s, _ := c["image"].(string)
	return s
}

// versions writes the images that a workload had, with the subject of the commit and how far it is behind.
func versions(t *testing.T, h verify.History, name string) (out []string) {
	t.Helper()
	for w, err := range h.Versions(verify.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s %d", image(w), w.Commit.Subject, w.Commit.Behind))
	}
	return out
}

// TestHistory finds what a workload was, also where it has moved, is gone, or is one of many in a file.
func TestHistory(t *testing.T) {
	r := repository{t, t.TempDir()}
	r.git("init", "-q")
	r.commit("one", map[string]string{"out/web.yaml": deployment("web", "a:1"), "out/gone.yaml": deployment("gone", "g:1"), "other/x.yaml": deployment("x", "x:1"),
		"out/all.yaml": deployment("p", "p:1") + "---\n" + deployment("q", "q:1"), "out/README.md": "no manifest"})
	r.commit("two", map[string]string{"out/web.yaml": deployment("web", "a:2"), "out/gone.yaml": ""})
	r.commit("elsewhere", map[string]string{"other/x.yaml": deployment("x", "x:2")})
	r.commit("moved", map[string]string{"out/web.yaml": "", "out/shop/web.yaml": deployment("web", "a:3"), "out/all.yaml": deployment("p", "p:1")})
	r.commit("Render\n\nPrerig-Source-Revision: main@sha1:abc\n", map[string]string{"out/all.yaml": deployment("p", "p:2")})

	o := options(t)
	o.Paths = []string{"out"}
	h, err := Open(t.Context(), r.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if head := h.Head(); head.ID != r.git("rev-parse", "HEAD") || head.Subject != "Render" || head.Source != "main@sha1:abc" || head.Time.IsZero() {
		t.Errorf("the newest commit is %+v", head)
	}
	if n := len(h.Workloads()); n != 2 {
		t.Errorf("%d workloads are committed, want web and p", n)
	}
	for name, want := range map[string][]string{
		"web":  {"a:3 moved 1", "a:2 elsewhere 2", "a:1 one 3"},
		"p":    {"p:1 moved 1", "p:1 elsewhere 2"},
		"q":    {"q:1 elsewhere 2"},
		"gone": {"g:1 one 3"},
		"x":    nil,
		"none": nil,
	} {
		if name == "web" {
			want = want[1:] // the newest commit has the first one
		}
		if diff := cmp.Diff(want, versions(t, h, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	o.MaxCommits, o.Revision = 1, "HEAD~1"
	if h, err = Open(t.Context(), filepath.Join(r.dir, "out"), Options{Registry: o.Registry, MaxCommits: 1, Revision: "HEAD~1"}); err != nil {
		t.Fatal(err)
	}
	if got := versions(t, h, "web"); !cmp.Equal(got, []string{"a:2 elsewhere 1"}) {
		t.Errorf("with one older commit, web was %v", got)
	}
}

// TestAPathThatIsNotThere refuses a path that the newest commit does not have: its workloads would not be compared. Older commits
// need not have it.
func TestAPathThatIsNotThere(t *testing.T) {
	r := repository{t, t.TempDir()}
	r.git("init", "-q")
	r.commit("one", map[string]string{"shop/web.yaml": deployment("web", "a:1")})
	r.commit("two", map[string]string{"shop/web.yaml": deployment("web", "a:2"), "payments/pay.yaml": deployment("pay", "p:1")})
	o := options(t)
	o.Paths = []string{"shop", "billing"}
	if _, err := Open(t.Context(), r.dir, o); err == nil || !strings.Contains(err.Error(), "billing") {
		t.Errorf("a path that is not there: %v", err)
	}
	o.Paths = []string{"shop", "payments"}
	h, err := Open(t.Context(), r.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := versions(t, h, "web"); !cmp.Equal(got, []string{"a:1 one 1"}) {
		t.Errorf("web was %v", got)
	}
}

// TestOlderCommitsThatCannotBeRead gives the versions that can be, and an error for those that might be in what cannot.
func TestOlderCommitsThatCannotBeRead(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: %s, namespace: shop}\nspec: {template: {spec: {containers: [{name: app, image: %s}]}}}\n"
	r := repository{t, t.TempDir()}
	r.git("init", "-q")
	r.commit("one", map[string]string{"web.yaml": deployment("web", "a:1"), "job.yaml": fmt.Sprintf(job, "j-", "j:1")})
	r.commit("two", map[string]string{"web.yaml": "kind: [\nmetadata: {name: web}\n", "half.yaml": deployment("half", "h:1") + "---\nkind: [", "other.yaml": "kind: ["})
	r.commit("three", map[string]string{"web.yaml": deployment("web", "a:3"), "half.yaml": "", "other.yaml": "", "job.yaml": fmt.Sprintf(job, "j-", "j:2")})
	h, err := Open(t.Context(), r.dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	of := func(ref verify.Ref) (out []string, problems int) {
		for w, err := range h.Versions(ref) {
			if err != nil {
				problems++
				continue
			}
			out = append(out, image(w))
		}
		return out, problems
	}
	if got, problems := of(verify.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}); !cmp.Equal(got, []string{"a:1"}) || problems != 1 {
		t.Errorf("web was %v, with %d problems", got, problems)
	}
	if got, problems := of(verify.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "half"}); !cmp.Equal(got, []string{"h:1"}) || problems != 0 {
		t.Errorf("what stands before what cannot be read was %v, with %d problems", got, problems)
	}
	generated := verify.Ref{Group: "batch", Kind: "Job", Namespace: "shop", Name: "j-*"}
	if h.Workloads()[generated] == nil {
		t.Errorf("the Job with a generateName is not among %v", h.Workloads())
	}
	if got, problems := of(generated); !cmp.Equal(got, []string{"j:1"}) || problems != 0 {
		t.Errorf("the Job with a generateName was %v, with %d problems", got, problems)
	}
}

// TestDirectory reads files that are in no repository, and refuses what is committed twice or nowhere.
func TestDirectory(t *testing.T) {
	r := repository{t, t.TempDir()}
	if _, err := Open(t.Context(), r.dir, options(t)); err == nil {
		t.Error("an empty directory was taken")
	}
	r.write(map[string]string{"a/web.yaml": deployment("web", "a:1"), "list.json": `{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod",` +
		`"metadata":{"name":"p"},"spec":{"containers":[]}}]}`})
	h, err := Open(t.Context(), r.dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	pod := h.Workloads()[verify.Ref{Kind: "Pod", Namespace: "default", Name: "p"}]
	if len(h.Workloads()) != 2 || pod == nil || pod.File != "list.json" || h.Head().ID != "" || len(versions(t, h, "web")) > 0 {
		t.Errorf("read %v of %v", h.Workloads(), h.Head())
	}
	r.write(map[string]string{"b/web.yaml": deployment("web", "a:2")})
	if _, err := Open(t.Context(), r.dir, options(t)); err == nil || !strings.Contains(err.Error(), "a/web.yaml and in b/web.yaml") {
		t.Errorf("what is committed twice: %v", err)
	}
}
