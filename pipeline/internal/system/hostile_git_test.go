// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/server"
)

// function is a transformer that names a program or an image to run.
func function(spec string) string {
	return "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"" + spec + "\"}\n"
}

// hostile are directories of a repository that must be refused: their files ("->" is a symbolic link) and what the status
// must say.
var hostile = map[string]struct {
	files map[string]string
	want  string
}{
	"link-out":         {map[string]string{"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": "->../../../../../etc/passwd"}, "leads out of the source tree"},
	"link-absolute":    {map[string]string{"x.yaml": "->/etc/passwd"}, "leads out of the source tree"},
	"link-to-itself":   {map[string]string{"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": "->x.yaml"}, "x.yaml"},
	"link-directory":   {map[string]string{"kustomization.yaml": "resources: [base]\n", "base": "->../../.."}, "leads out of the source tree"},
	"dot-dot":          {map[string]string{"kustomization.yaml": "resources: [../../../../etc/passwd]\n"}, "etc/passwd"},
	"outside-of-root":  {map[string]string{"kustomization.yaml": "configMapGenerator:\n- {name: x, files: [../../secret.txt]}\n"}, "not in or below"},
	"absolute":         {map[string]string{"kustomization.yaml": "resources:\n- /etc/passwd\n"}, "kustomization.yaml:2"},
	"secret-file":      {map[string]string{"kustomization.yaml": "secretGenerator:\n- name: x\n  files: [\"token=/var/run/secrets/kubernetes.io/serviceaccount/token\"]\n"}, "absolute path"},
	"secret-env":       {map[string]string{"kustomization.yaml": "secretGenerator:\n- name: x\n  envs: [/proc/self/environ]\n"}, "absolute path"},
	"secret-relative":  {map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: x\n  envs: [../../../../../proc/self/environ]\n"}, "environ"},
	"alias-bomb":       {map[string]string{"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": bomb()}, "aliasing"},
	"alias-bomb-there": {map[string]string{"kustomization.yaml": bomb()}, "aliasing"},
	"alias-bomb-plain": {map[string]string{"x.yaml": bomb()}, "x.yaml"},
	"exec":             {map[string]string{"kustomization.yaml": "resources: [w.yaml]\ntransformers: [x.yaml]\n", "w.yaml": deployment("w", "i"), "x.yaml": function("exec: {path: ./evil.sh}")}, "never run"},
	"container":        {map[string]string{"kustomization.yaml": "resources: [w.yaml]\ntransformers: [x.yaml]\n", "w.yaml": deployment("w", "i"), "x.yaml": function("container: {image: evil.example.com/fn}")}, "evil.example.com/fn is not Prerig's own"},
	"generator":        {map[string]string{"kustomization.yaml": "generators: [x.yaml]\n", "x.yaml": function("exec: {path: ./evil.sh}")}, "never run"},
	"kptfile":          {map[string]string{"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: x}\npipeline:\n  mutators:\n  - {image: evil.example.com/fn}\n"}, "evil.example.com/fn"},
	"helm":             {map[string]string{"kustomization.yaml": "helmCharts:\n- {name: x, repo: https://charts.example.com}\n"}, "kubeVersion must be given"},
	"helm-generator":   {map[string]string{"kustomization.yaml": "generators: [x.yaml]\n", "x.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: x\n"}, "elm"},
	"remote":           {map[string]string{"kustomization.yaml": "resources:\n- https://robot:c4nary-in-a-url@git.example.com/org/repo//path?ref=main\n"}, "kustomization.yaml:2"},
	"remote-ssh":       {map[string]string{"kustomization.yaml": "resources: [\"git@git.example.com:org/repo\"]\n"}, "is remote"},
	"remote-patch":     {map[string]string{"kustomization.yaml": "patches:\n- path: https://git.example.com/x.yaml\n"}, "is remote"},
	"local-repository": {map[string]string{"kustomization.yaml": "resources: [\"file:///etc\"]\n"}, "is remote"},
	"cycle":            {map[string]string{"kustomization.yaml": "resources: [../cycle-too]\n", "../cycle-too/kustomization.yaml": "resources: [../cycle]\n"}, "cycle"},
	"typo-in-policy":   {map[string]string{"kustomization.yaml": "resources: [w.yaml]\ntransformers: [p.yaml]\n", "w.yaml": deployment("w", "i"), "p.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: prerig-fn}\"}\nspec: {istoi: {}}\n"}, "istoi"},
	"too-large":        {map[string]string{"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": strings.Repeat("# filler, much of it\n", 1<<20)}, "size of apps/too-large/x.yaml"},
}

// place writes files of an application into the work tree, instead of what is there.
func place(t *testing.T, r *gittest.Repository, name string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(r.Work, "apps", name)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		full := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(full, []byte(content), 0o600) }
		if target, ok := strings.CutPrefix(content, "->"); ok {
			write = func() error { return os.Symlink(target, full) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileSourcesAreRefused pushes each of them where something good was rendered before: the status says why it is
// refused, and what was published stays as it is.
func TestHostileSourcesAreRefused(t *testing.T) {
	f := prepare(t, nil)
	names := slices.Sorted(maps.Keys(hostile))
	for _, name := range names {
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, f.repository.URL))
		place(t, f.repository, name, map[string]string{"app.yaml": deployment(name, "image:good")})
	}
	f.repository.Commit("good", map[string]string{"secret.txt": "not to be read"})
	f.start()
	f.allReady(len(names))
	published := f.repository.Git("rev-parse", "rendered")
	for _, name := range names {
		place(t, f.repository, name, hostile[name].files)
	}
	f.push(f.repository.Commit("hostile", nil))
	for _, name := range names {
		f.refused(name, hostile[name].want)
	}
	if now := f.repository.Git("rev-parse", "rendered"); now != published {
		t.Errorf("the published branch has changed:\n%s", f.repository.Git("diff", "--stat", published, now))
	}
	// One that is mended is rendered again.
	place(t, f.repository, "link-out", map[string]string{"app.yaml": deployment("link-out", "image:mended")})
	f.push(f.repository.Commit("mended", nil))
	f.shows("link-out/shop/deployment-link-out.yaml", "image:mended")
}

// refused waits until the status of a pipeline says that its source is refused, and why.
func (f *fixture) refused(name, want string) {
	f.t.Helper()
	f.eventually("waiting for "+name+" to be refused", func() string {
		p := f.pipelines("team/" + name)[0]
		if p.State != server.StateStalled && p.State != server.StateFailing || !strings.Contains(p.Message, want) {
			return p.State + " " + p.Message
		}
		for _, never := range []string{"c4nary", "root:x", "not to be read", f.c.State} {
			if strings.Contains(p.Message, never) {
				f.t.Errorf("the message of %s tells %s: %s", name, never, p.Message)
			}
		}
		if len(p.Message) > 2100 {
			f.t.Errorf("the message of %s is %d bytes long", name, len(p.Message))
		}
		return ""
	})
}

// importOnto commits files onto main without a work tree: each begins with its number, and the rest is zeros.
func importOnto(t *testing.T, r *gittest.Repository, files int, file func(i int) (name string, size int)) string {
	t.Helper()
	command := exec.Command("git", "-c", "core.compression=1", "-c", "pack.compression=1", "fast-import", "--quiet")
	var said bytes.Buffer
	command.Dir, command.Stderr = r.Bare, &said
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(in, 1<<20)
	fmt.Fprint(w, "commit refs/heads/main\ncommitter Ann <ann@example.com> 1700000000 +0000\ndata 4\nhuge\nfrom refs/heads/main^0\n")
	zeros := make([]byte, 1<<20)
	for i := range files {
		name, size := file(i)
		fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%08d", name, size+8, i)
		for ; size > 0; size -= len(zeros) {
			_, _ = w.Write(zeros[:min(size, len(zeros))])
		}
		fmt.Fprintln(w)
	}
	if err := errors.Join(w.Flush(), in.Close(), command.Wait()); err != nil {
		t.Fatal(err, said.String())
	}
	return r.Git("rev-parse", "main")
}

// hugeBytes is the size of a huge file: really two gigabytes in the full tests.
func hugeBytes() int {
	if full() {
		return 2 << 30
	}
	return 80 << 20
}

// TestHugeRepositoriesAreRefused pushes a file that is huge once it is unpacked, from a server that can leave it out and
// from one that cannot, and 200,000 files.
func TestHugeRepositoriesAreRefused(t *testing.T) {
	f := prepareAlone(t, nil)
	want := map[string]string{"filtered": "size of apps/filtered/huge.yaml", "whole": "size of the largest file", "many": "number of files"}
	repositories := map[string]*gittest.Repository{}
	for name := range want {
		r := f.git.Repository(t, name)
		r.Commit("good", map[string]string{"apps/" + name + "/app.yaml": deployment(name, "image:good")})
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, r.URL))
		repositories[name] = r
	}
	repositories["whole"].Git("config", "uploadpack.allowFilter", "false")
	f.start()
	f.allReady(len(want))
	stop := watchMemory(t)
	for name, r := range repositories {
		commit := ""
		if name == "many" {
			commit = importOnto(t, r, 200_000, func(i int) (string, int) { return fmt.Sprintf("d%d/f%d", i/1000, i), 0 })
		} else {
			commit = importOnto(t, r, 1, func(int) (string, int) { return "apps/" + name + "/huge.yaml", hugeBytes() })
		}
		before := r.Git("rev-parse", "rendered")
		f.pushTo(r, commit)
		f.refused(name, want[name])
		if now := r.Git("rev-parse", "rendered"); now != before {
			t.Errorf("%s has published something", name)
		}
	}
	daemon, renderers := stop()
	t.Logf("at most %d MB of heap in the daemon, and %d MB in a renderer", daemon>>20, renderers>>20)
	if daemon > 400<<20 || renderers > 400<<20 {
		t.Errorf("the daemon had %d MB of heap, a renderer %d MB", daemon>>20, renderers>>20)
	}
}
