// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/chart"
)

// small are limits that tests reach soon.
func small() chart.Limits {
	return chart.Limits{Archive: 1 << 20, Index: 1 << 20, Timeout: 20 * time.Second, Cache: 1 << 20}
}

func from(url string) v1alpha1.ChartRepository {
	return v1alpha1.ChartRepository{URL: url, Insecure: true}
}

// What a range means, from both kinds of repositories.
func TestResolve(t *testing.T) {
	repository, registry := charttest.New(t), charttest.Registry(t, nil)
	archives := map[string][]byte{}
	for _, version := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0+build.5", "0.9.0"} {
		archives[version] = charttest.Package(t, "web", version, nil)
		repository.Add("web", version, archives[version])
		charttest.Push(t, registry, "team/charts", "web", version, archives[version])
	}
	for versions, want := range map[string]string{
		"": "2.0.0+build.5", "^1.0.0": "1.10.0", "~1.2": "1.2.0", "1.0.0": "1.0.0", "2.0.0-rc.1": "2.0.0-rc.1", "<1": "0.9.0", "1.x": "1.10.0", ">=2.0.0-0 <2.0.0": "2.0.0-rc.1",
	} {
		for _, url := range []string{repository.URL, "oci://" + registry + "/team/charts"} {
			f := chart.New(chart.Options{StateDir: t.TempDir()})
			locked, content, err := f.Resolve(t.Context(), "", from(url), "web", versions)
			if err != nil || locked.Version != want || !bytes.Equal(content, archives[want]) || locked.Digest != charttest.Digest(archives[want]) {
				t.Errorf("%s %q: got %+v, %v", url, versions, locked, err)
				continue
			}
			// What is locked is what is brought.
			got, err := f.Archive(t.Context(), "", from(url), locked)
			if err != nil || !bytes.Equal(got, archives[want]) {
				t.Errorf("%s: %v", locked, err)
			}
		}
	}
	for versions, want := range map[string]string{"^3": "none of its 6 versions is in the range ^3", "one": `"one" is not a range of versions`} {
		for _, url := range []string{repository.URL, "oci://" + registry + "/team/charts"} {
			_, _, err := chart.New(chart.Options{StateDir: t.TempDir()}).Resolve(t.Context(), "", from(url), "web", versions)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: got %v", url, versions, err)
			}
		}
	}
	for _, url := range []string{repository.URL, "oci://" + registry + "/team/charts"} {
		if _, _, err := chart.New(chart.Options{StateDir: t.TempDir()}).Resolve(t.Context(), "", from(url), "other", ""); !errors.Is(err, chart.ErrNotFound) {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

// TestIndexOfARegistry has an index as Bitnami's is, which names charts of a registry.
func TestIndexOfARegistry(t *testing.T) {
	repository := charttest.New(t)
	repository.AddAt("external-dns", "8.6.0", "oci://registry-1.docker.io/bitnamicharts/external-dns:8.6.0", "")
	_, err := chart.New(chart.Options{StateDir: t.TempDir()}).Choose(t.Context(), "", from(repository.URL), "external-dns", "")
	if err == nil || !strings.Contains(err.Error(), "has the version 8.6.0 in a registry; name oci://registry-1.docker.io/bitnamicharts as the repository") {
		t.Errorf("got %v", err)
	}
}

// Helm takes versions as they are in an index, and from a registry only the tags that are semantic versions in full.
func TestResolveLooseVersions(t *testing.T) {
	repository, registry := charttest.New(t), charttest.Registry(t, nil)
	for _, version := range []string{"1.0.0", "v1.1.0"} {
		content := charttest.Package(t, "web", version, nil)
		repository.Add("web", version, content)
		charttest.Push(t, registry, "charts", "web", version, content)
	}
	for _, test := range []struct{ url, versions, want string }{
		{repository.URL, "^1", "v1.1.0"},
		{repository.URL, "1.1.0", "v1.1.0"},
		{repository.URL, "1.1", "v1.1.0"},
		{"oci://" + registry + "/charts", "^1", "1.0.0"},
		{"oci://" + registry + "/charts", "v1.1.0", "v1.1.0"},
		{"oci://" + registry + "/charts", "1.1.0", ""},
		{"oci://" + registry + "/charts", "1.0", ""},
	} {
		chosen, err := chart.New(chart.Options{StateDir: t.TempDir()}).Choose(t.Context(), "", from(test.url), "web", test.versions)
		if chosen.Version != test.want || (test.want == "") != errors.Is(err, chart.ErrNotFound) {
			t.Errorf("%s %s: got %q, %v", test.url, test.versions, chosen.Version, err)
		}
	}
}

// A render asks for an archive once, and what lies in the cache is never believed.
func TestCache(t *testing.T) {
	repository, state := charttest.New(t), t.TempDir()
	content := charttest.Package(t, "web", "1.0.0", nil)
	repository.Add("web", "1.0.0", content)
	locked := v1alpha1.LockedChart{Name: "web", Repository: repository.URL, Version: "1.0.0", Digest: charttest.Digest(content), URL: repository.URL + "/charts/web-1.0.0.tgz"}
	f := chart.New(chart.Options{StateDir: state})
	fetch := func(want int) {
		t.Helper()
		got, err := f.Archive(t.Context(), "", from(repository.URL), locked)
		if err != nil || !bytes.Equal(got, content) || len(repository.Asked()) != want {
			t.Errorf("%v, the repository was asked for %v", err, repository.Asked())
		}
	}
	fetch(1)
	fetch(1)
	kept, err := filepath.Glob(filepath.Join(state, "charts", "*.tgz"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	fetch(2)
	fetch(2)
}

// The cache has room for what was used last.
func TestCacheIsBounded(t *testing.T) {
	repository, state := charttest.New(t), t.TempDir()
	f := chart.New(chart.Options{StateDir: state, Limits: chart.Limits{Archive: 1 << 20, Index: 1 << 20, Timeout: time.Minute, Cache: 1000}})
	for i := range 10 {
		version := fmt.Sprintf("1.%d.0", i)
		content := charttest.Package(t, "web", version, nil)
		if len(content) < 130 {
			t.Fatalf("the archive has %d bytes", len(content))
		}
		repository.Add("web", version, content)
		locked := v1alpha1.LockedChart{Name: "web", Repository: repository.URL, Version: version, Digest: charttest.Digest(content), URL: repository.URL + "/charts/web-" + version + ".tgz"}
		if _, err := f.Archive(t.Context(), "", from(repository.URL), locked); err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	entries, err := os.ReadDir(filepath.Join(state, "charts"))
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 1000 {
		t.Errorf("%d archives have %d bytes", len(entries), total)
	}
}

// Credentials go to the repository's own server, and what they give is for those who have them.
func TestCredentials(t *testing.T) {
	secrets := t.TempDir()
	for at, text := range map[string]string{"team/charts/username": "reader", "team/charts/password": "s3cret\n"} {
		at = filepath.Join(secrets, at)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content := charttest.Package(t, "web", "1.0.0", nil)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another server got the credentials")
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(elsewhere.Close)
	check := func(w http.ResponseWriter, r *http.Request) bool {
		if _, password, _ := r.BasicAuth(); password != "s3cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return true
		}
		return false
	}
	repository := charttest.New(t)
	repository.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if check(w, r) {
			return true
		}
		if r.URL.Path == "/moved.tgz" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return true
		}
		return false
	}
	repository.Add("web", "1.0.0", content)
	repository.AddAt("web", "2.0.0", elsewhere.URL+"/web.tgz", charttest.Digest(content))
	repository.AddAt("web", "3.0.0", repository.URL+"/moved.tgz", charttest.Digest(content))
	if err := os.WriteFile(filepath.Join(secrets, "team/charts", secret.KeyHosts), []byte(repository.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := chart.New(chart.Options{StateDir: t.TempDir(), Secrets: secret.Dir{Path: secrets}})
	with := v1alpha1.ChartRepository{URL: repository.URL, SecretRef: &meta.LocalObjectReference{Name: "charts"}}
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		locked, _, err := f.Resolve(t.Context(), "team", with, "web", version)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Archive(t.Context(), "team", with, locked); err != nil {
			t.Error(err)
		}
		if _, err := f.Archive(t.Context(), "other", from(repository.URL), locked); err == nil || !strings.Contains(err.Error(), "401 (Unauthorized)") {
			t.Errorf("without credentials: got %v", err)
		}
	}
	if _, err := f.Archive(t.Context(), "team", v1alpha1.ChartRepository{URL: "http://localhost:1", SecretRef: with.SecretRef}, v1alpha1.LockedChart{Digest: "sha256:x"}); err == nil || !strings.Contains(err.Error(), "secret team/charts may not be used") {
		t.Errorf("for another server: got %v", err)
	}
}

// The end of the caller's own context is no timeout of the server.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	locked := v1alpha1.LockedChart{Name: "web", Digest: charttest.Digest(nil), URL: "http://localhost:1/web.tgz"}
	if _, err := chart.New(chart.Options{StateDir: t.TempDir()}).Archive(ctx, "", from("http://localhost:1"), locked); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
