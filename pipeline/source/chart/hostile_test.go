// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/chart"
)

// hostile is a repository over HTTP that misbehaves, and the error that tells of it.
var hostile = map[string]struct {
	serve func(w http.ResponseWriter, r *http.Request)
	want  string
	final bool
}{
	"another archive":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "something else") }, "now serves other content", true},
	"gone":               {http.NotFound, "answers 404 (Not Found) to /web.tgz", false},
	"redirects for ever": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/web.tgz", http.StatusFound) }, "leads elsewhere more than 5 times", false},
	"redirects to a file": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	}, "unsupported protocol scheme", false},
	"leads to metadata": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	}, "which the daemon does not connect to", true},
	"endless": {func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 64<<10); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}, "is larger than 1048576 bytes", true},
}

func TestHostileRepository(t *testing.T) {
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(test.serve))
			t.Cleanup(server.Close)
			f := chart.New(chart.Options{StateDir: t.TempDir(), Limits: small(), Dialer: egress.NewDialer(egress.Rules{})})
			locked := v1alpha1.LockedChart{Name: "web", Repository: server.URL, Version: "1.0.0", Digest: charttest.Digest([]byte("web")), URL: server.URL + "/web.tgz"}
			_, err := f.Archive(t.Context(), "", from(server.URL), locked)
			if err == nil || !strings.Contains(err.Error(), test.want) || chart.IsPermanent(err) != test.final {
				t.Errorf("got %v, permanent: %t", err, chart.IsPermanent(err))
			}
		})
	}
}

// A server that does not answer is left after the time that there is.
func TestHangingRepository(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	repository := charttest.New(t)
	repository.Intercept = hang
	limits := small()
	limits.Timeout = 100 * time.Millisecond
	f := chart.New(chart.Options{StateDir: t.TempDir(), Limits: limits})
	for _, url := range []string{repository.URL, "oci://" + charttest.Registry(t, hang) + "/charts"} {
		locked := v1alpha1.LockedChart{Name: "web", Repository: url, Version: "1.0.0", Digest: charttest.Digest(nil), URL: url + "/web.tgz"}
		if _, err := f.Archive(t.Context(), "", from(url), locked); err == nil || !strings.Contains(err.Error(), "the server did not give it within 100ms") {
			t.Errorf("got %v", err)
		}
		if _, err := f.Choose(t.Context(), "", from(url), "web", ""); err == nil || !strings.Contains(err.Error(), "the server did not give it within 100ms") {
			t.Errorf("got %v", err)
		}
	}
}

// An index without an end, and one whose aliases stand for too much.
func TestHostileIndex(t *testing.T) {
	for name, test := range map[string]struct {
		write func(w http.ResponseWriter)
		want  string
	}{
		"endless": {func(w http.ResponseWriter) {
			for {
				if _, err := fmt.Fprintf(w, "# %s\n", strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}, "/index.yaml is larger than 1048576 bytes"},
		"aliases": {func(w http.ResponseWriter) {
			fmt.Fprint(w, "apiVersion: v1\na: &a [x, x, x, x, x, x, x, x, x, x]\n")
			for c := 'b'; c < 'k'; c++ {
				fmt.Fprintf(w, "%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), c-1)
			}
		}, "is not the index of a chart repository"},
		"a page": {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>welcome</html>") }, "is not the index of a chart repository"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.write(w) }))
			t.Cleanup(server.Close)
			f := chart.New(chart.Options{StateDir: t.TempDir(), Limits: small()})
			if _, err := f.Choose(t.Context(), "", from(server.URL), "web", ""); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A lock cannot lead to a server that neither the pipeline nor the repository names.
func TestArchiveElsewhere(t *testing.T) {
	content := charttest.Package(t, "web", "1.0.0", nil)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	t.Cleanup(elsewhere.Close)
	repository := charttest.New(t)
	locked := v1alpha1.LockedChart{Name: "web", Repository: repository.URL, Version: "1.0.0", Digest: charttest.Digest(content), URL: elsewhere.URL + "/web-1.0.0.tgz"}
	fetch := func() error {
		_, err := chart.New(chart.Options{StateDir: t.TempDir()}).Archive(t.Context(), "", from(repository.URL), locked)
		return err
	}
	if err := fetch(); err == nil || !chart.IsPermanent(err) || !strings.Contains(err.Error(), "the index of the repository does not name it") {
		t.Errorf("got %v", err)
	}
	repository.AddAt("web", "1.0.0", locked.URL+"x", locked.Digest)
	if err := fetch(); err == nil {
		t.Error("a URL that another begins with is taken for it")
	}
	repository.AddAt("web", "1.0.0", locked.URL, locked.Digest)
	if err := fetch(); err != nil {
		t.Error(err)
	}
}

// The digest that a repository tells must be that of what it gives.
func TestLyingIndex(t *testing.T) {
	repository := charttest.New(t)
	content := charttest.Package(t, "web", "1.0.0", nil)
	repository.Add("web", "1.0.0", content)
	repository.AddAt("web", "1.0.0", "charts/web-1.0.0.tgz", charttest.Digest([]byte("x")))
	_, _, err := chart.New(chart.Options{StateDir: t.TempDir()}).Resolve(t.Context(), "", from(repository.URL), "web", "")
	if err == nil || !strings.Contains(err.Error(), "and the repository's index has sha256:") {
		t.Errorf("got %v", err)
	}
}

// A registry that gives something else than what a digest names, pages of tags without an end, and an endless blob.
func TestHostileRegistry(t *testing.T) {
	content := charttest.Package(t, "web", "1.0.0", nil)
	for name, test := range map[string]struct {
		intercept func(w http.ResponseWriter, r *http.Request) bool
		want      string
	}{
		"another blob": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
				fmt.Fprint(w, "something else")
				return true
			}
			return false
		}, "not what the registry calls it"},
		"endless tags": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/tags/list") {
				w.Header().Set("Link", `</v2/charts/web/tags/list?n=1>; rel="next"`)
				fmt.Fprint(w, `{"tags": ["1.0.0"]}`)
				return true
			}
			return false
		}, "more than 200 requests"},
		"a list of gigabytes": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/tags/list") {
				return false
			}
			fmt.Fprint(w, `{"tags": [`)
			for {
				if _, err := fmt.Fprintf(w, `"%s",`, strings.Repeat("x", 1000)); err != nil {
					return true
				}
			}
		}, "more bytes than there is room for"},
		"pages of empty tags": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/tags/list") {
				return false
			}
			w.Header().Set("Link", `</v2/charts/web/tags/list?n=1>; rel="next"`)
			fmt.Fprint(w, `{"tags": [`+strings.Repeat(`"",`, 30_000)+`"1.0.0"]}`)
			return true
		}, "more than 100000 elements"},
		"an endless blob": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
				return false
			}
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return true
				}
			}
		}, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			armed := false
			host := charttest.Registry(t, func(w http.ResponseWriter, r *http.Request) bool { return armed && test.intercept(w, r) })
			charttest.Push(t, host, "charts", "web", "1.0.0", content)
			armed = true
			f := chart.New(chart.Options{StateDir: t.TempDir(), Limits: small()})
			if _, _, err := f.Resolve(t.Context(), "", from("oci://"+host+"/charts"), "web", ""); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
