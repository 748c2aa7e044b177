// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/server"
)

// helmPipeline renders the chart web of a repository, locked in charts.lock.yaml.
func helmPipeline(name, url, repository string) string {
	return strings.Replace(pipelineYAML(name, url), "build: {path: apps/"+name+"}", fmt.Sprintf(`build:
    helm: {chart: web, repository: %q, version: ^1.0.0, namespace: shop, kubeVersion: 1.33.4}
    chartRepositories: [{url: %[1]q, insecure: %[2]t}]
    chartLock: %[3]s.lock.yaml
    limits: {timeout: 30s}`, repository, strings.HasPrefix(repository, "oci:"), name), 1)
}

// lockOf locks the chart web.
func lockOf(repository, version, digest, url string) string {
	text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n"+
		"  - {name: web, repository: %q, range: ^1.0.0, version: %s, digest: %q", repository, version, digest)
	if url != "" {
		text += fmt.Sprintf(", url: %q", url)
	}
	return text + "}\n"
}

// webChart is the archive of a version of the chart web, whose Deployment has the version as its image's tag.
func webChart(t *testing.T, version string, more map[string]string) []byte {
	files := map[string]string{"templates/web.yaml": deployment("web", "web:"+version)}
	for name, text := range more {
		files[name] = text
	}
	return charttest.Package(t, "web", version, files)
}

// archiveOf is an archive whose entries are written by hand.
func archiveOf(t *testing.T, write func(w *tar.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func addEntry(w *tar.Writer, head tar.Header, content io.Reader) error {
	head.Mode = 0o644
	if err := w.WriteHeader(&head); err != nil || head.Size == 0 {
		return err
	}
	_, err := io.CopyN(w, content, head.Size)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// metadataAnd begins an archive with a good Chart.yaml.
func metadataAnd(next func(w *tar.Writer) error) func(w *tar.Writer) error {
	return func(w *tar.Writer) error {
		text := "apiVersion: v2\nname: web\nversion: 1.0.9\n"
		head := tar.Header{Name: "web/Chart.yaml", Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := addEntry(w, head, strings.NewReader(text)); err != nil {
			return err
		}
		return next(w)
	}
}

// gigabyte is an archive that unpacks to that. Its zeros are a hundredth of it, compressed once, and so again and again: with the race
// detector it takes more than a minute to compress all of them.
func gigabyte(t *testing.T) []byte {
	t.Helper()
	const parts, each = 100, 10 << 20
	zipped := func(content io.Reader) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := io.Copy(w, content)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	err := metadataAnd(func(w *tar.Writer) error {
		return w.WriteHeader(&tar.Header{Name: "web/files/zeros", Size: parts * each, Mode: 0o644, Typeflag: tar.TypeReg})
	})(w)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(zipped(&head), bytes.Repeat(zipped(io.LimitReader(zeros{}, each)), parts), zipped(io.LimitReader(zeros{}, 1024)))
}

// refusedCharts are archives of the version 1.0.9 whose digest is that of the lock, and what the pipeline says of them. Those that use up
// what a render may take are left out where the test is not to take long: TestHostileCharts renders such charts.
func refusedCharts(t *testing.T) map[string]struct {
	archive []byte
	want    string
} {
	t.Helper()
	link := archiveOf(t, metadataAnd(func(w *tar.Writer) error {
		return addEntry(w, tar.Header{Name: "web/templates/a.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, nil)
	}))
	absolute := archiveOf(t, metadataAnd(func(w *tar.Writer) error {
		return addEntry(w, tar.Header{Name: "/etc/cron.d/web", Size: 1, Typeflag: tar.TypeReg}, zeros{})
	}))
	text := func(template string) []byte {
		return webChart(t, "1.0.9", map[string]string{"templates/x.yaml": template})
	}
	refused := map[string]struct {
		archive []byte
		want    string
	}{
		"unpacks to a gigabyte":   {gigabyte(t), "it holds more than 67108864 bytes when it is unpacked"},
		"with a link":             {link, "is a link or a device"},
		"with an absolute path":   {absolute, "leads out of the archive"},
		"of another name":         {charttest.Package(t, "other", "1.0.9", nil), "holds another chart than web 1.0.9, which is locked"},
		"of another version":      {charttest.Package(t, "web", "1.0.8", nil), "holds another chart than web 1.0.9, which is locked"},
		"that is no archive":      {[]byte("<html>welcome</html>"), "is not an archive that helm package made"},
		"that writes without end": {text(`{{ range until 100000 }}{{ repeat 100000 "x" }}{{ end }}`), "needs more memory than its limit|the render took too long"},
		"that counts without end": {text(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), "the render took too long|more processor time|needs more memory"},
		"that calls itself":       {text(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), "nested reference name: a"},
		"with passwords":          {text("a: {{ randAlphaNum 8 }}\n"), "each render would have another result"},
	}
	if !full() {
		delete(refused, "that writes without end")
		delete(refused, "that counts without end")
	}
	return refused
}

// TestChartsThatAreRefused has a chart that is locked and good, then others that are not: the pipeline says why, what is published stays
// as it is, another pipeline goes on, and the next good chart is published.
func TestChartsThatAreRefused(t *testing.T) {
	f := prepare(t, nil)
	f.c.Limits.Timeout = 10 * time.Second // which one of the charts uses up
	charts := charttest.New(t)
	f.write(filepath.Join(f.c.Pipelines, "web.yaml"), helmPipeline("web", f.repository.URL, charts.URL))
	plain := strings.Replace(pipelineYAML("plain", f.repository.URL), "branch: rendered", "branch: plain", 1)
	f.write(filepath.Join(f.c.Pipelines, "plain.yaml"), plain)
	lock := func(version string, archive []byte) map[string]string {
		charts.Add("web", version, archive)
		url := charts.URL + "/charts/web-" + version + ".tgz"
		return map[string]string{"web.lock.yaml": lockOf(charts.URL, version, charttest.Digest(archive), url)}
	}
	first := lock("1.0.0", webChart(t, "1.0.0", nil))
	first["apps/plain/plain.yaml"] = deployment("plain", "plain:0")
	f.repository.Commit("first", first)
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:1.0.0")
	f.shows(file, "istio-proxy")

	step, all := 0, t
	// refused expects that nothing is published of a commit, and that the next good chart is.
	refused := func(t *testing.T, files map[string]string, want string) {
		t.Helper()
		f.t = t
		defer func() { f.t = all }()
		step++
		says := regexp.MustCompile(want)
		before := f.repository.Git("rev-parse", "rendered")
		files["apps/plain/plain.yaml"] = deployment("plain", fmt.Sprint("plain:", step))
		f.push(f.repository.Commit("bad", files))
		f.eventually("waiting for the pipeline to refuse it", func() string {
			p := f.pipelines("team/web")[0]
			if p.State != server.StateFailing && p.State != server.StateStalled || !says.MatchString(p.Message) {
				return "want " + want + ", got " + p.State + " " + p.Message
			}
			return ""
		})
		f.eventually("waiting for the other pipeline", func() string {
			text := f.repository.Git("show", "plain:plain/shop/deployment-plain.yaml")
			if !strings.Contains(text+"\n", fmt.Sprint("image: plain:", step, "\n")) {
				return text
			}
			return ""
		})
		if after := f.repository.Git("rev-parse", "rendered"); after != before {
			t.Errorf("the branch moved: %s", f.repository.Git("log", "--stat", before+".."+after))
		}
		good := fmt.Sprintf("1.0.%d", 10+step)
		f.push(f.repository.Commit("good", lock(good, webChart(t, good, nil))))
		f.shows(file, "image: web:"+good+"\n")
		f.eventually("waiting for the pipeline to be ready", func() string {
			if p := f.pipelines("team/web")[0]; p.State != server.StateReady {
				return p.State + " " + p.Message
			}
			return ""
		})
	}

	for name, test := range refusedCharts(t) {
		t.Run(name, func(t *testing.T) { refused(t, lock("1.0.9", test.archive), test.want) })
	}
	t.Run("with another digest than the lock", func(t *testing.T) {
		files := lock("1.0.9", webChart(t, "1.0.9", nil))
		charts.Add("web", "1.0.9", webChart(t, "1.0.9", map[string]string{"templates/more.yaml": "a: b\n"}))
		refused(t, files, "the repository now serves other content")
	})
	t.Run("that is not locked", func(t *testing.T) {
		lock, _, _ := strings.Cut(lockOf(charts.URL, "1.0.9", "", ""), "  charts:")
		refused(t, map[string]string{"web.lock.yaml": lock + "  charts: []\n"}, "run prerig lock")
	})
}

// TestChartRepositoryIsAway has repositories, one over HTTP and a registry, that are away and later hang: what is published stays, the
// pipelines say so, another one goes on, and the charts are published when they are there again, without another event.
func TestChartRepositoryIsAway(t *testing.T) {
	const (
		there = iota
		away
		hangs
	)
	var how atomic.Int32
	intercept := func(w http.ResponseWriter, r *http.Request) bool {
		switch how.Load() {
		case away:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case hangs:
			<-r.Context().Done()
		default:
			return false
		}
		return true
	}
	f := prepare(t, nil)
	charts := charttest.New(t)
	charts.Intercept = intercept
	host := charttest.Registry(t, intercept)
	registry := "oci://" + host + "/charts"
	f.c.Workers = 3
	for name, at := range map[string]string{"http": charts.URL, "oci": registry} {
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), helmPipeline(name, f.repository.URL, at))
	}
	f.write(filepath.Join(f.c.Pipelines, "plain.yaml"), pipelineYAML("plain", f.repository.URL))
	version := func(version string) map[string]string {
		archive := webChart(t, version, nil)
		charts.Add("web", version, archive)
		was := how.Swap(there)
		charttest.Push(t, host, "charts", "web", version, archive)
		how.Store(was)
		return map[string]string{
			"http.lock.yaml":        lockOf(charts.URL, version, charttest.Digest(archive), charts.URL+"/charts/web-"+version+".tgz"),
			"oci.lock.yaml":         lockOf(registry, version, charttest.Digest(archive), ""),
			"apps/plain/plain.yaml": deployment("plain", "plain:"+version),
		}
	}
	published := func(version string, names ...string) {
		t.Helper()
		for _, name := range names {
			f.shows(name+"/shop/deployment-"+map[bool]string{true: "plain", false: "web"}[name == "plain"]+".yaml", ":"+version+"\n")
		}
	}
	f.repository.Commit("first", version("1.0.0"))
	f.start()
	published("1.0.0", "http", "oci", "plain")
	f.allReady(3)

	now := "1.0.0"
	for _, test := range []struct {
		next string
		how  int32
		want string
	}{{"1.1.0", away, "503"}, {"1.2.0", hangs, "the server did not give it within"}} {
		if test.how == hangs && !full() {
			continue // it takes a minute
		}
		how.Store(test.how)
		f.push(f.repository.Commit("next", version(test.next)))
		published(test.next, "plain")
		for _, name := range []string{"http", "oci"} {
			f.failsWith(name, test.want)
		}
		published(now, "http", "oci")
		how.Store(there)
		published(test.next, "http", "oci") // without another event
		f.allReady(3)
		now = test.next
	}
}
