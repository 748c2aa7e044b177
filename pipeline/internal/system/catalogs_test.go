// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// of is a pipeline of a namespace that renders apps/NAME to the branch rendered.
func (f *fixture) of(namespace, name string) string {
	return strings.Replace(pipelineYAML(name, f.repository.URL, deletes), "namespace: team", "namespace: "+namespace, 1)
}

// TestOneTeamsRepositoryHoldsNoOthers: pipelines of two teams in repositories of their own. While the server of one is away and what it
// had is half gone, the other's pipelines come, run and go; a file of one cannot name the other's.
func TestOneTeamsRepositoryHoldsNoOthers(t *testing.T) {
	var away atomic.Bool
	f := prepare(t, nil)
	s := gittest.New(t)
	s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
		}
		return away.Load()
	})
	shop, evil := f.git.Repository(t, "shop"), s.Repository(t, "evil")
	f.c.Pipelines, f.c.Removals.Delay = "", 300*time.Millisecond
	f.c.PipelinesGitList = []config.PipelinesGit{
		{Name: "evil", URL: evil.URL, Namespaces: []string{"evil"}, Interval: time.Second},
		{Name: "shop", URL: shop.URL, Namespaces: []string{"shop"}, Interval: time.Second},
	}
	applications := map[string]string{}
	for _, name := range []string{"web", "api", "a", "b", "late"} {
		applications["apps/"+name+"/app.yaml"] = deployment(name, name+":1")
	}
	f.repository.Commit("first", applications)
	shop.Commit("first", map[string]string{"web.yaml": f.of("shop", "web"), "api.yaml": f.of("shop", "api")})
	evil.Commit("first", map[string]string{"a.yaml": f.of("evil", "a"), "b.yaml": f.of("evil", "b"), "web.yaml": f.of("shop", "web")})
	f.start()
	f.eventually("waiting for the pipelines", func() string {
		got := fmt.Sprint(f.states())
		if want := "map[evil/a:Ready evil/b:Ready evil:web.yaml#shop/web:Invalid shop/api:Ready shop/web:Ready]"; got != want {
			return got
		}
		return ""
	})
	if e := f.pipelines("shop/web")[0]; e.File != "shop:web.yaml" {
		t.Errorf("the pipeline is from %s", e.File)
	}

	// The other team's file that is not valid, a pipeline that went, and a server that does not answer.
	evil.Commit("second", map[string]string{"b.yaml": "", "broken.yaml": "kind: [\n"})
	f.eventually("waiting for the removal of evil/b to be held", func() string {
		for _, r := range f.catalog().Removals {
			if r.Pipeline == "evil/b" && r.State == prune.Held {
				return ""
			}
		}
		return fmt.Sprintf("%+v", f.catalog())
	})
	away.Store(true)
	f.eventually("waiting for the metrics to tell of it", func() string {
		m := f.metrics()
		if m[`prerig_catalog_readable{catalog="evil"}`] != 0 || m[`prerig_catalog_readable{catalog="shop"}`] != 1 || m[`prerig_catalog_last_read_timestamp_seconds{catalog="evil"}`] == 0 {
			return fmt.Sprint(m)
		}
		return ""
	})
	shop.Commit("second", map[string]string{"api.yaml": "", "late.yaml": f.of("shop", "late")})
	f.shows("late/shop/deployment-late.yaml", "image: late:1")
	removed := func(name string) {
		t.Helper()
		f.eventually("waiting for "+name+" to be removed", func() string {
			c := f.catalog()
			for _, r := range c.Removed {
				if r.Pipeline == name {
					return ""
				}
			}
			return fmt.Sprintf("%+v", c)
		})
	}
	removed("shop/api")
	f.push(f.repository.Commit("second", map[string]string{"apps/a/app.yaml": deployment("a", "a:2")}))
	f.shows("a/shop/deployment-a.yaml", "image: a:2")

	// The daemon starts without it, as it was.
	f.stop()
	f.start()
	f.eventually("waiting for the daemon to say that the server is away", func() string {
		c := f.catalog()
		if len(c.Catalogs) != 2 || c.Catalogs[0].Name != "evil" || c.Catalogs[0].Error == "" || c.Catalogs[1].Error != "" || !strings.HasPrefix(c.Error, "evil: ") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	if got := fmt.Sprint(f.states()); got != "map[evil/a:Ready evil:broken.yaml:Invalid evil:web.yaml#shop/web:Invalid shop/late:Ready shop/web:Ready]" {
		t.Errorf("after a restart: %s", got)
	}
	away.Store(false)
	evil.Commit("third", map[string]string{"broken.yaml": "", "web.yaml": ""})
	removed("evil/b")
	var got []string
	for file := range strings.Lines(f.files()) {
		if directory, _, _ := strings.Cut(file, "/"); directory != ".prerig" {
			got = append(got, directory)
		}
	}
	if diff := cmp.Diff([]string{"a", "late", "web"}, got); diff != "" {
		t.Errorf("what is published: %s", diff)
	}
}
