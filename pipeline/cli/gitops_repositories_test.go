// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// TestGitOpsRepositories finds what other people's repositories deliver, renders it, and compares with Flux's own packages and with Argo
// CD's own generators. PRERIG_REPOSITORIES lists clones, PRERIG_ARGOCD_GENERATE is the program that calls Argo CD. It prints a row for each
// repository, and what is not equal with the reason.
func TestGitOpsRepositories(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("PRERIG_REPOSITORIES"))
	if len(dirs) == 0 {
		t.Skip("PRERIG_REPOSITORIES names no clones")
	}
	var rows []string
	for _, dir := range dirs {
		r := openGitOps(t, dir)
		r.count(t)
		r.compareFlux(t)
		if program := os.Getenv("PRERIG_ARGOCD_GENERATE"); program != "" {
			r.compareArgoCD(t, program)
		}
		rows = append(rows, r.row())
		t.Logf("%s\n%s", r.row(), r.reasons())
	}
	t.Logf("| repository | commit | builds | Kustomizations | HelmReleases | Applications | ApplicationSets |\n|---|---|---|---|---|---|---|\n%s", strings.Join(rows, "\n"))
}

// gitOps is a clone of a repository, and what became of its objects.
type gitOps struct {
	name, commit, work string
	url                string
	snapshot           *source.Snapshot
	renderer           *dryrun.Renderer
	entries            []catalog.Entry
	files              []gitOpsObject
	inFiles            map[string]int // objects by kind
	outcomes           map[string]*outcome
}

// gitOpsObject is an object in a file of the repository.
type gitOpsObject struct {
	file  string
	value map[string]any
}

// outcome counts the objects of a kind: those that builds reach, those that are equal, and the others by their reason.
type outcome struct {
	reached, equal int
	others         map[string][]string
}

func (r *gitOps) of(kind string) *outcome {
	if r.outcomes[kind] == nil {
		r.outcomes[kind] = &outcome{others: map[string][]string{}}
	}
	return r.outcomes[kind]
}

// openGitOps clones a clone, which the comparison changes, and finds its builds.
func openGitOps(t *testing.T, dir string) *gitOps {
	t.Helper()
	r := &gitOps{name: strings.Replace(filepath.Base(dir), "+", "/", 1), work: filepath.Join(t.TempDir(), "work"), inFiles: map[string]int{}, outcomes: map[string]*outcome{}}
	text, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+dir, r.work).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	r.url = "https://github.com/" + r.name
	local, err := git.OpenLocal(r.work)
	must(t, err)
	head, err := commitEnd(local, "HEAD", r.url)
	must(t, err)
	r.snapshot, r.commit = head.snapshot, head.snapshot.Digest[:9]
	o := reviewOptions{kubernetes: "1.36"}
	o.cache = t.TempDir()
	var closing func()
	r.renderer, closing, err = o.startRenderer(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, "test")
	must(t, err)
	t.Cleanup(closing)
	r.renderer.Instead, r.renderer.KeepFiles = head.supply, true
	r.entries, err = discoverEntries(r.snapshot, discover.Options{KubeVersion: "1.36.0", PolicyName: "prerig.yaml", URLs: []string{r.url}})
	must(t, err)
	return r
}

// count reads the objects in files, and notes which of these a build reads.
func (r *gitOps) count(t *testing.T) {
	t.Helper()
	view := sourcetree.NewView(r.snapshot.Tree, sourcetree.Limits{})
	read := map[string]bool{}
	for _, one := range r.renderer.All(t.Context(), r.entries) {
		if one.Built != nil {
			for _, access := range one.Built.Record {
				read[access.Path] = read[access.Path] || access.Op == sourcetree.OpRead
			}
		}
	}
	must(t, filepath.WalkDir(r.work, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !manifest.IsFileName(name) || strings.Contains(name, "/.") {
			return err
		}
		name, err = filepath.Rel(r.work, name)
		if err != nil {
			return err
		}
		text, err := view.Read(name)
		if err != nil || len(text) > 1<<20 {
			return nil
		}
		r.addFile(name, text, read[name])
		return nil
	}))
}

// gitOpsKinds are the kinds that are counted.
var gitOpsKinds = []string{"Kustomization", "HelmRelease", "Application", "ApplicationSet"}

func (r *gitOps) addFile(name string, text []byte, read bool) {
	for _, doc := range bytes.Split(text, []byte("\n---")) {
		var value map[string]any
		if yaml.Unmarshal(doc, &value) != nil {
			continue
		}
		object := unstructured.Unstructured{Object: value}
		group, _, _ := strings.Cut(object.GetAPIVersion(), "/")
		of := map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io"}[object.GetKind()]
		if !slices.Contains(gitOpsKinds, object.GetKind()) || of != "" && of != group || of == "" && group != "argoproj.io" || object.GetName() == "" {
			continue
		}
		r.inFiles[object.GetKind()]++
		if read {
			r.of(object.GetKind()).reached++
		}
		r.files = append(r.files, gitOpsObject{name, value})
	}
}

// row is the repository's row of the table: in files, of them read by builds, and of those that are built how many are equal.
func (r *gitOps) row() string {
	cells := []string{r.name, r.commit, fmt.Sprint(len(r.entries))}
	for _, kind := range gitOpsKinds {
		o := r.of(kind)
		others := 0
		for _, list := range o.others {
			others += len(list)
		}
		cell := fmt.Sprintf("%d, %d read", r.inFiles[kind], o.reached)
		if o.equal+others > 0 {
			cell += fmt.Sprintf("; %d of %d equal", o.equal, o.equal+others)
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// reasons lists why the others are not equal.
func (r *gitOps) reasons() string {
	var out strings.Builder
	for _, kind := range gitOpsKinds {
		for _, reason := range slices.Sorted(maps.Keys(r.of(kind).others)) {
			list := r.of(kind).others[reason]
			fmt.Fprintf(&out, "   %d %ss %s: %s\n", len(list), kind, reason, list[0])
		}
	}
	return out.String()
}

// gitOpsReasons are the classes of reasons, by what their messages contain.
var gitOpsReasons = []struct{ text, class string }{
	{"needs a key", "need a key"}, {"is encrypted", "need a key"},
	{"only the cluster has", "need the cluster"}, {"needs Argo CD's clusters", "need the clusters"}, {"asks a server", "ask a server"}, {"asks a service", "ask a service"}, {"asks the API", "ask a Git host"}, {"it has no value and no default", "have a variable without a value"},
	{"is none of the pipeline's sources", "are of another repository"}, {"is not this source", "are of another source"},
	{"charts.lock.yaml", "lack a locked chart"}, {"is not locked", "lack a locked chart"}, {"remoteBases", "have a remote base"}, {"does not allow the chart repository", "lack a locked chart"}, {"plugins of Argo CD", "need a plugin"},
	{"is Jsonnet", "are Jsonnet"}, {"must be another one for each Application", "make two Applications of one name, which the controller refuses"}, {"Git LFS", "need large files"},
}

func classOf(message string) string {
	for _, one := range gitOpsReasons {
		if strings.Contains(message, one.text) {
			return one.class
		}
	}
	return "fail"
}

func (o *outcome) add(class, what string) { o.others[class] = append(o.others[class], what) }

// byIdentity returns objects as JSON, by their identity.
func byIdentity(objects []map[string]any) map[string]string {
	out := map[string]string{}
	for _, value := range objects {
		one := unstructured.Unstructured{Object: value}
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(err.Error())
		}
		out[one.GetAPIVersion()+" "+one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName()] = string(text)
	}
	return out
}

// objectsOf decodes rendered objects, by their units.
func objectsOf(t *testing.T, response *render.Response) map[string][]map[string]any {
	t.Helper()
	out := map[string][]map[string]any{}
	for _, object := range response.Objects {
		var value map[string]any
		must(t, yaml.Unmarshal(object.YAML, &value))
		out[object.Unit] = append(out[object.Unit], value)
	}
	return out
}

// firstDifference names the first object that differs, "" if none does.
func firstDifference(got, want map[string]string) string {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			at := 0
			for at < len(got[id]) && at < len(want[id]) && got[id][at] == want[id][at] {
				at++
			}
			from := max(0, at-60)
			return fmt.Sprintf("%s: got %.140q, want %.140q", id, got[id][min(from, len(got[id])):], want[id][from:])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			return id + ": only here"
		}
	}
	return ""
}
