// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// hostileServer is a server of repositories, charts and artifacts that answers so that it costs as much as possible.
// The kind is the first part of a path.
type hostileServer struct {
	*httptest.Server
	silent string // the address of one that takes connections and says nothing
	bomb   []byte // a pack of deltas
}

func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

const anyHash = "1234567890123456789012345678901234567890"

// advertised is a list of one reference.
func advertised() string {
	capabilities := "\x00ofs-delta shallow side-band-64k symref=HEAD:refs/heads/main\n"
	return packet("# service=git-upload-pack\n") + "0000" + packet(anyHash+" HEAD"+capabilities) + packet(anyHash+" refs/heads/main\n") + "0000"
}

// drip writes pieces until nobody reads them any more.
func drip(w http.ResponseWriter, r *http.Request, pause time.Duration, piece func(i int) []byte) {
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := w.Write(piece(i)); err != nil {
			return
		}
		if pause > 0 {
			w.(http.Flusher).Flush()
			time.Sleep(pause)
		}
	}
}

func newHostileServer(t *testing.T) *hostileServer {
	t.Helper()
	h := &hostileServer{silent: silent(t)}
	pack := &gittest.Pack{}
	const size = 60 << 20
	pack.AddBlob(t, make([]byte, size))
	for i := range 20_000 {
		pack.AddDelta(t, size, binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	h.bomb = pack.Finish()
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Start()
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

func (h *hostileServer) serve(w http.ResponseWriter, r *http.Request) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if kind == "v2" {
		h.serveRegistry(w, r, rest)
		return
	}
	if strings.HasSuffix(rest, "/info/refs") || strings.HasSuffix(rest, "/git-upload-pack") {
		service := "advertisement"
		if r.Method == http.MethodPost {
			service = "result"
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+service)
	}
	switch kind {
	case "slow":
		text := advertised()
		drip(w, r, 200*time.Millisecond, func(i int) []byte { return []byte{text[i%len(text)]} })
	case "endless-refs":
		_, _ = io.WriteString(w, packet("# service=git-upload-pack\n")+"0000"+packet(anyHash+" HEAD\x00ofs-delta\n"))
		drip(w, r, 0, func(i int) []byte {
			return []byte(packet(fmt.Sprintf("%s refs/heads/%s%d\n", anyHash, strings.Repeat("x", 1000), i)))
		})
	case "gzip-bomb":
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := zipped.Write(zeros); err != nil {
				return
			}
		}
	case "delta-bomb":
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, advertised())
			return
		}
		_, _ = io.WriteString(w, packet("shallow "+anyHash+"\n")+"0000"+packet("NAK\n"))
		for left := h.bomb; len(left) > 0; { // by the side band
			n := min(len(left), 60_000)
			_, _ = io.WriteString(w, packet("\x01"+string(left[:n])))
			left = left[n:]
		}
		_, _ = io.WriteString(w, "0000")
	case "endless-progress":
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, advertised())
			return
		}
		_, _ = io.WriteString(w, packet("shallow "+anyHash+"\n")+"0000"+packet("NAK\n"))
		drip(w, r, time.Millisecond, func(int) []byte { return []byte(packet("\x02" + strings.Repeat("counting ", 1000))) })
	case "endless-headers":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for line := "X-Filler: " + strings.Repeat("x", 10_000) + "\r\n"; ; {
			if _, err := io.WriteString(conn, line); err != nil {
				return
			}
		}
	case "redirect-to-private":
		http.Redirect(w, r, "http://169.254.169.254/latest/"+rest, http.StatusFound)
	case "chart-index":
		_, _ = io.WriteString(w, "apiVersion: v1\nentries:\n")
		drip(w, r, 0, func(i int) []byte {
			return fmt.Appendf(nil, "  c%d: [{version: 1.0.0, urls: [%s]}]\n", i, strings.Repeat("x", 1000))
		})
	case "chart-bomb":
		zipped := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := zipped.Write(zeros); err != nil {
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

// serveRegistry answers as a registry whose manifests lead to each other, or whose blobs are not what they are called.
func (h *hostileServer) serveRegistry(w http.ResponseWriter, r *http.Request, rest string) {
	layer := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("layer")))
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "loop/") && strings.Contains(rest, "/manifests/"):
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	case strings.Contains(rest, "/manifests/"):
		manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
			`"config":{"mediaType":"application/vnd.cncf.flux.config.v1+json","size":9999999999,"digest":%q},`+
			`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":9999999,"digest":%[1]q}]}`, layer)
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(manifest))))
		_, _ = io.WriteString(w, manifest)
	case strings.Contains(rest, "/blobs/"):
		zipped := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := zipped.Write(zeros); err != nil {
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

// hostileKinds are the sources of hostile pipelines, by what their server does; HOST is the server, SILENT the one
// that says nothing.
var hostileKinds = map[string]string{
	"slow": "git: {url: http://HOST/slow/N.git}", "endless-refs": "git: {url: http://HOST/endless-refs/N.git}",
	"gzip-bomb": "git: {url: http://HOST/gzip-bomb/N.git}", "delta-bomb": "git: {url: http://HOST/delta-bomb/N.git}",
	"endless-progress": "git: {url: http://HOST/endless-progress/N.git}", "endless-headers": "git: {url: http://HOST/endless-headers/N.git}",
	"redirect-to-private": "git: {url: http://HOST/redirect-to-private/N.git}", "stalled": "git: {url: https://SILENT/N.git}",
	"wrong-digest": "oci: {url: oci://HOST/wrong/nN, insecure: true}", "manifest-loop": "oci: {url: oci://HOST/loop/nN, insecure: true}",
	"chart-index": "", "chart-bomb": "",
}

// hostilePipeline is a pipeline of another namespace with a hostile source. Charts are locked by a source of their own.
func (h *hostileServer) hostilePipeline(kind string, i int, charts *gittest.Repository) string {
	host := strings.TrimPrefix(h.URL, "http://")
	source, build := strings.NewReplacer("HOST", host, "SILENT", h.silent, "N", fmt.Sprint(i)).Replace(hostileKinds[kind]), "{path: apps}"
	if source == "" {
		source = fmt.Sprintf("git: {url: %s, ref: {branch: main}}", charts.URL)
		build = fmt.Sprintf("{path: %s, chartRepositories: [{url: http://%s/%[1]s}]}", kind, host)
	}
	return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s-%d, namespace: evil}\nspec:\n  interval: 5s\n  source: {%s}\n  build: %s\n"+
		"  publish: [{git: {url: %s, branch: out, path: %[1]s-%[2]d}}]\n", kind, i, source, build, charts.URL)
}

// addCharts commits kustomizations that want charts which the server gives.
func (h *hostileServer) addCharts(charts *gittest.Repository) {
	files := map[string]string{}
	for kind, archive := range map[string]string{"chart-index": "/elsewhere/web.tgz", "chart-bomb": "/chart-bomb/web.tgz"} {
		files[kind+"/kustomization.yaml"] = fmt.Sprintf("helmCharts:\n- {name: web, repo: %s/%s, version: 1.0.0, kubeVersion: 1.34.0}\n", h.URL, kind)
		files[kind+"/charts.lock.yaml"] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n  - {name: web, repository: %s/%s, range: 1.0.0, version: 1.0.0, digest: \"sha256:%x\", url: %s%s}\n",
			h.URL, kind, sha256.Sum256(nil), h.URL, archive)
	}
	charts.Commit("charts", files)
}

// skipUnlessAsked leaves out what takes long also at its smallest.
func skipUnlessAsked(t *testing.T) {
	t.Helper()
	if os.Getenv("PRERIG_E2E") == "" {
		t.Skip("LEFT OUT: PRERIG_E2E=short runs it small, and make e2e-pipeline at full size")
	}
}

// hostileSize is how many sources of either sort there are, how many pushes are measured, and for how long.
func hostileSize() (sources, rounds int, longest time.Duration) {
	if full() {
		return 100, 1000, 10 * time.Minute
	}
	return 12, 6, time.Minute
}

// TestHonestSourcesBesideHostileOnes has as many hostile sources as honest ones, of twelve kinds, with a daemon that
// has the memory of the one in deploy. It stays within that, and pushes to the honest ones are published about as soon
// as without the others.
func TestHonestSourcesBesideHostileOnes(t *testing.T) {
	skipUnlessAsked(t)
	f := prepareAlone(t, nil)
	sources, rounds, longest := hostileSize()
	h := newHostileServer(t)
	charts := f.git.Repository(t, "charts")
	h.addCharts(charts)
	var honest []*gittest.Repository
	for i := range sources {
		r := f.git.Repository(t, fmt.Sprintf("honest-%d", i))
		r.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "image:0")})
		text := strings.Replace(pipelineYAML("web", r.URL), "name: web,", fmt.Sprintf("name: web-%d,", i), 1)
		f.write(filepath.Join(f.c.Pipelines, fmt.Sprintf("web-%d.yaml", i)), text)
		honest = append(honest, r)
	}
	f.c.Egress.Allow = []string{"127.0.0.0/8"}
	f.c.Listen, f.c.Admin.Listen = free(t), free(t)
	f.hooks, f.page = f.c.Listen, f.c.Admin.Listen
	text, err := json.Marshal(f.c)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 1536 << 20 // of the StatefulSet in deploy, of which the daemon takes its share as in a container
	d := supervise(t, filepath.Join(t.TempDir(), "log"), []string{
		"PRERIG_TEST_DAEMON=" + string(text), "PRERIG_TEST_RENDERER=" + renderer(t)[0], fmt.Sprintf("GOMEMLIMIT=%d", limit/100*60),
	})
	published := func(r *gittest.Repository, image string) bool {
		return r.Git("branch", "--list", "rendered") != "" && strings.Contains(r.Git("grep", "-h", "image:", "rendered"), image+"\n")
	}
	for _, r := range honest {
		f.eventually("waiting for the first results", func() string {
			if !published(r, "image:0") {
				return f.describe()
			}
			return ""
		})
	}
	version := 0
	measure := func(rounds int) (all []time.Duration) {
		for end := time.Now().Add(longest); len(all) < rounds && time.Now().Before(end); {
			version++
			r, image := honest[version%len(honest)], fmt.Sprintf("image:%d", version)
			commit := r.Commit(image, map[string]string{"apps/web/app.yaml": deployment("web", image)})
			begin := time.Now()
			f.pushTo(r, commit)
			f.eventually("waiting for a push", func() string {
				if !published(r, image) {
					return "it is not published"
				}
				return ""
			})
			all = append(all, time.Since(begin))
		}
		return all
	}
	alone := measure(min(rounds, 50))
	before := d.memory()
	kinds := slices.Sorted(maps.Keys(hostileKinds))
	for i := range sources {
		kind := kinds[i%len(kinds)]
		f.write(filepath.Join(f.c.Pipelines, fmt.Sprintf("evil-%s-%d.yaml", kind, i)), h.hostilePipeline(kind, i, charts))
	}
	f.eventually("waiting for the hostile pipelines", func() string {
		for _, p := range f.pipelines() {
			if strings.HasPrefix(p.Name, "evil/") && p.State == "New" {
				return p.Name + " has not run"
			}
		}
		return ""
	})
	beside := measure(rounds)
	for _, p := range f.pipelines() {
		if strings.HasPrefix(p.Name, "evil/") && p.State == "Ready" {
			t.Errorf("%s is %s", p.Name, p.State)
		}
		t.Logf("%s: %s %.200s", p.Name, p.State, p.Message)
	}
	t.Logf("%d hostile sources beside %d: %d pushes took %s each (median) and %s at most, %d alone %s and %s; the daemon had %d MB before and %d MB at most",
		sources, sources, len(beside), median(beside), slices.Max(beside), len(alone), median(alone), slices.Max(alone), before>>20, d.memory()>>20)
	if d.memory() > limit {
		t.Errorf("the daemon takes %d MB", d.memory()>>20)
	}
	if full() && median(beside) > 2*median(alone)+time.Second {
		t.Errorf("honest pushes take %s beside hostile sources, %s alone", median(beside), median(alone))
	}
}

// memory is the most memory that the process has had, in bytes.
func (p *process) memory() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return 0
	}
	return peak(filepath.Join("/proc", fmt.Sprint(p.command.Process.Pid)))
}

// TestStepsOfTheClockStopNothing has the times of all that the daemon keeps in files be ahead of its clock, or behind,
// as they are when that was set back or forward, or when a file server has another one; with and without a restart in
// between.
func TestStepsOfTheClockStopNothing(t *testing.T) {
	skipUnlessAsked(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL", "  interval: 5s\n")})
	f.repository.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "image:0")})
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image:0\n")
	steps := []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour, time.Second, -time.Minute, 49 * time.Hour, -time.Second, 5 * time.Minute, -10 * 365 * 24 * time.Hour}
	for i := range 2 * len(steps) {
		at := time.Now().Add(steps[i%len(steps)])
		restart := i >= len(steps)
		if restart {
			f.stop()
		}
		err := filepath.WalkDir(f.c.State, func(path string, _ os.DirEntry, err error) error {
			if err != nil || strings.Contains(path, "/queue/") {
				return nil //nolint:nilerr // what comes and goes; and the queue's files have no times that anybody reads
			}
			_ = os.Chtimes(path, at, at)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if restart {
			f.start()
		}
		image := fmt.Sprintf("image:%d\n", i+1)
		f.push(f.repository.Commit(image, map[string]string{"apps/web/app.yaml": deployment("web", strings.TrimSpace(image))}))
		f.shows(file, image)
	}
}
