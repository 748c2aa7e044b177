// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// hostileServer is a server of repositories, charts and artifacts that answers so that it costs as much as possible.
// The kind is the first part of a path.
type hostileServer struct {
	*httptest.Server
	silent net.Addr // of one that takes connections and says nothing
	// bomb is a pack of deltas, zipped a piece of a gzip stream that inflates to zeros, and refs and index are pieces of
	// lists. They are made once, so that the processor is left to the daemon.
	bomb, zipped, refs, index []byte

	mu    sync.Mutex
	asked map[string]int // requests by kind
}

// piecesSize is about how large the repeated pieces of endless answers are.
const piecesSize = 1 << 20

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
	h := &hostileServer{asked: map[string]int{}}
	h.silent = h.listenSilently(t)
	pack := &gittest.Pack{}
	const size = 60 << 20
	pack.AddBlob(t, make([]byte, size))
	for i := range 20_000 {
		pack.AddDelta(t, size, binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	h.bomb = pack.Finish()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := io.CopyN(w, zeros{}, 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h.zipped = zipped.Bytes()
	filler := strings.Repeat("x", 1000)
	for i := 0; len(h.refs) < piecesSize; i++ {
		h.refs = append(h.refs, packet(fmt.Sprintf("%s refs/heads/%s%d\n", anyHash, filler, i))...)
		h.index = fmt.Appendf(h.index, "  c%d: [{version: 1.0.0, urls: [%s]}]\n", i, filler)
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Start()
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// listenSilently takes connections, and keeps them without an answer.
func (h *hostileServer) listenSilently(t *testing.T) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h.note("stalled")
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return l.Addr()
}

// note counts a request.
func (h *hostileServer) note(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[kind]++
}

// unasked returns the kinds that were asked for less often than a number of times.
func (h *hostileServer) unasked(times int) (kinds []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(hostileKinds)) {
		if h.asked[kind] < times {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (h *hostileServer) serve(w http.ResponseWriter, r *http.Request) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if kind == "v2" {
		h.serveRegistry(w, r, rest)
		return
	}
	h.note(kind)
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
		drip(w, r, 0, func(int) []byte { return h.refs })
	case "gzip-bomb":
		w.Header().Set("Content-Encoding", "gzip")
		drip(w, r, 0, func(int) []byte { return h.zipped })
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
		drip(w, r, 0, func(int) []byte { return h.index })
	case "chart-bomb":
		drip(w, r, 0, func(int) []byte { return h.zipped })
	default:
		http.NotFound(w, r)
	}
}

// serveRegistry answers as a registry whose manifests lead to each other, or whose blobs are not what they are called.
func (h *hostileServer) serveRegistry(w http.ResponseWriter, r *http.Request, rest string) {
	layer := digestOf("layer")
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "loop/") && strings.Contains(rest, "/manifests/"):
		h.note("manifest-loop")
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	case strings.Contains(rest, "/manifests/"):
		manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
			`"config":{"mediaType":"application/vnd.cncf.flux.config.v1+json","size":9999999999,"digest":%q},`+
			`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":9999999,"digest":%[1]q}]}`, layer)
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digestOf(manifest))
		_, _ = io.WriteString(w, manifest)
	case strings.Contains(rest, "/blobs/"):
		h.note("wrong-digest")
		drip(w, r, 0, func(int) []byte { return h.zipped })
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
	source, build := strings.NewReplacer("HOST", host, "SILENT", h.silent.String(), "N", fmt.Sprint(i)).Replace(hostileKinds[kind]), "{path: apps}"
	if source == "" {
		source = fmt.Sprintf("git: {url: %s, ref: {branch: main}}", charts.URL)
		build = fmt.Sprintf("{path: %s, chartRepositories: [{url: http://%s/%[1]s}], chartLock: %[1]s/charts.lock.yaml}", kind, host)
	}
	return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s-%d, namespace: evil}\nspec:\n  interval: 5s\n  source: {%s}\n  build: %s\n"+
		"  publish: [{git: {url: %s, branch: out, path: %[1]s-%[2]d}}]\n", kind, i, source, build, charts.URL)
}

// addCharts commits kustomizations that want charts which the server gives.
func (h *hostileServer) addCharts(charts *gittest.Repository) {
	files := map[string]string{}
	for kind, archive := range map[string]string{"chart-index": "/elsewhere/web.tgz", "chart-bomb": "/chart-bomb/web.tgz"} {
		files[kind+"/kustomization.yaml"] = fmt.Sprintf("helmCharts:\n- {name: web, repo: %s/%s, version: 1.0.0, kubeVersion: 1.34.0}\n", h.URL, kind)
		files[kind+"/charts.lock.yaml"] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n  - {name: web, repository: %s/%s, range: 1.0.0, version: 1.0.0, digest: %q, url: %s%s}\n",
			h.URL, kind, digestOf(""), h.URL, archive)
	}
	charts.Commit("charts", files)
}

func digestOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
