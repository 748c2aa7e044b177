// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
)

// distribution is the registry of the distribution project, which tells a daemon of what is pushed.
type distribution struct {
	*process
	host, root string
}

// startRegistry starts the registry with its notifications to an address. The binary is looked for under the names that
// Debian and upstream give it, and in PRERIG_REGISTRY.
func startRegistry(t *testing.T, notified string) *distribution {
	t.Helper()
	binary := os.Getenv("PRERIG_REGISTRY")
	for _, name := range []string{"docker-registry", "registry"} {
		if path, err := exec.LookPath(name); err == nil && binary == "" {
			binary = path
		}
	}
	if binary == "" {
		t.Skip("LEFT OUT: no registry: install Debian's docker-registry, or set PRERIG_REGISTRY to a binary of distribution")
	}
	r := &distribution{host: free(t), root: t.TempDir()}
	file := filepath.Join(t.TempDir(), "config.yml")
	text := fmt.Sprintf(`version: 0.1
log: {level: info, accesslog: {disabled: false}}
storage:
  filesystem: {rootdirectory: %q}
http: {addr: %s, draintimeout: 5s}
notifications:
  endpoints:
  - name: prerig
    url: http://%s/hook/registry
    headers: {Authorization: [Bearer %s]}
    timeout: 2s
    threshold: 3
    backoff: 500ms
`, r.root, r.host, notified, registryKey)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.process = &process{program: binary, args: []string{"serve", file}, logs: filepath.Join(t.TempDir(), "registry"), silent: true}
	r.begin(t)
	r.answers(t)
	return r
}

const registryKey = "the-token-of-the-registry"

// answers waits until the registry does.
func (r *distribution) answers(t *testing.T) {
	t.Helper()
	for range 600 {
		if resp, err := http.Get("http://" + r.host + "/v2/"); err == nil {
			resp.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the registry does not answer")
}

// stopping stops the registry and starts it again, again and again. It is stopped in order, as what its own crash does to
// its files is not ours to mend.
func (r *distribution) stopping(t *testing.T, stop <-chan struct{}) (times int) {
	up := 300 * time.Millisecond // soon the first time, as few pushes take little more than a second
	for {
		select {
		case <-stop:
			return times
		case <-time.After(up):
		}
		up = time.Duration(1000+rand.IntN(3000)) * time.Millisecond
		r.hold(true)
		if r.signal(syscall.SIGTERM) {
			times++
		}
		r.gone()
		select {
		case <-stop:
		case <-time.After(time.Duration(500+rand.IntN(3500)) * time.Millisecond):
		}
		r.hold(false)
		r.answers(t)
	}
}

// revisions returns the source revisions of all that a repository's tag has ever pointed to, oldest first, from the
// registry's own files.
func (r *distribution) revisions(t *testing.T, repository string) (out []string) {
	t.Helper()
	links, err := filepath.Glob(filepath.Join(r.root, "docker/registry/v2/repositories", repository, "_manifests/tags/latest/index/sha256/*/link"))
	if err != nil {
		t.Fatal(err)
	}
	when := func(name string) time.Time {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	sort.Slice(links, func(i, j int) bool { return when(links[i]).Before(when(links[j])) })
	for _, link := range links {
		digest := filepath.Base(filepath.Dir(link))
		text, err := os.ReadFile(filepath.Join(r.root, "docker/registry/v2/blobs/sha256", digest[:2], digest, "data"))
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct{ Annotations map[string]string }
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(err)
		}
		out = append(out, manifest.Annotations["org.opencontainers.image.revision"])
	}
	return out
}

// pushes counts how often the registry has answered that a manifest was stored.
func (r *distribution) pushes(t *testing.T, repository string) int {
	t.Helper()
	text, err := os.ReadFile(r.logs)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, one := range strings.Split(string(text), "\n") {
		if strings.Contains(one, fmt.Sprintf(`"PUT /v2/%s/manifests/latest HTTP/1.1" 201`, repository)) {
			n++
		}
	}
	return n
}

// newChains prepares pipelines of two kinds: one publishes an artifact from Git, the other renders that artifact to a
// branch. The path of the second is the name of the first, so that all that is checked of branches is checked of it.
func newChains(t *testing.T, n size) (*chaos, *distribution) {
	t.Helper()
	c := emptyChaos(t, n, n.pipelines/2)
	key := filepath.Join(c.c.Secrets, "registry.key")
	c.write(key, registryKey)
	c.c.Receivers = append(c.c.Receivers, config.Receiver{Name: "registry", Provider: "distribution", Secret: key})
	r := startRegistry(t, c.address)
	for i := range n.pipelines / 2 {
		name := fmt.Sprintf("app%d", i)
		artifact := fmt.Sprintf(`oci: {url: "oci://%s/rendered/%s", insecure: true}`, r.host, name)
		// A notification is lost when the registry stops, so that the interval is needed.
		text := pipelineYAML(name, c.repository.URL, "  interval: 5s\n")
		c.write(filepath.Join(c.c.Pipelines, name+".yaml"), strings.Replace(text, "git: {branch: rendered}", artifact, 1))
		text = pipelineYAML("copy"+fmt.Sprint(i), c.repository.URL, "  interval: 5s\n")
		text = strings.Replace(text, "git: {url: "+c.repository.URL+", ref: {branch: main}}", artifact, 1)
		text = strings.Replace(text, fmt.Sprintf("path: apps/copy%d", i), "path: .", 1)
		text = strings.Replace(text, "git: {branch: rendered}", fmt.Sprintf("git: {url: %s, branch: %s, path: %s}", c.repository.URL, branchOf(i), name), 1)
		c.write(filepath.Join(c.c.Pipelines, "copy-"+name+".yaml"), text)
	}
	return c, r
}

// TestRegistryThatIsDown stops the registry again and again, which is the target of half of the pipelines and the source of
// the others.
func TestRegistryThatIsDown(t *testing.T) {
	c, r := newChains(t, sized(size{12, 4, 2}))
	c.serve(c.c, false)
	stop := make(chan struct{})
	var group sync.WaitGroup
	times := 0
	group.Go(func() { times = r.stopping(t, stop) })
	c.quiet = sync.OnceFunc(func() { close(stop); group.Wait() })
	defer c.quiet()
	c.run()
	if times == 0 {
		t.Error("the registry was never down")
	}
	order := map[string]int{}
	for n, commit := range strings.Fields(c.repository.Git("rev-list", "--reverse", "main")) {
		order["main@sha1:"+commit] = n + 1
	}
	artifacts, pushes := 0, 0
	for i := range c.newest {
		repository := fmt.Sprintf("rendered/app%d", i)
		last := 0
		revisions := r.revisions(t, repository)
		for _, revision := range revisions {
			if order[revision] <= last {
				t.Errorf("the tag of %s was set to %s after a later one, or it is unknown: %v", repository, revision, revisions)
			}
			last = order[revision]
		}
		stored := r.pushes(t, repository)
		artifacts, pushes = artifacts+len(revisions), pushes+stored
	}
	// An answer that the end of the registry or of the daemon loses on its way has the artifact pushed again.
	if lost := times + c.size.kills; pushes > artifacts+lost {
		t.Errorf("%d artifacts were pushed %d times, and at most %d answers were lost", artifacts, pushes, lost)
	}
	told := 0
	c.logged(func(l line, text string) {
		if l.Msg == "delivery" && l.Outcome == "stored" && strings.Contains(text, `"receiver":"registry"`) {
			told++
		}
	})
	if artifacts < len(c.newest) || pushes == 0 || told == 0 {
		t.Errorf("%d artifacts, %d pushes and %d notifications are too few for a test", artifacts, pushes, told)
	}
	t.Logf("the registry was down %d times; %d artifacts, %d pushes of them answered; %d notifications of the registry stored", times, artifacts, pushes, told)
}
