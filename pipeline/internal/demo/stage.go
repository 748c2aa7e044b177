// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/internal/demo/host"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// The pipelines and tags that the things to try are about.
const (
	brokenPipeline  = "shop/search-staging"
	driftedPipeline = "shop/checkout-staging"
	breaking        = "break-search"
	releasing       = "catalog-1.1"
	merger          = "Ann"
)

// stage makes the situation that people find: the first version is on all clusters, and then three people have each
// done something.
func (d *demo) stage(ctx context.Context) error {
	d.printf("Rendering %d applications for %d clusters with Istio %s …", appCount(), len(clusters), oldIstio)
	if err := d.waitForVersion(ctx, "staging", oldIstio); err != nil {
		return err
	}
	for _, wave := range waves() {
		number, err := d.waitForPull(ctx, wave)
		if err != nil {
			return err
		}
		if err := d.rendered.Merge(number, "", merger); err != nil {
			return err
		}
	}
	d.printf("Upgrading to Istio %s, breaking an application, and changing a rendered file by hand …", newIstio)
	for _, step := range []func(context.Context) error{d.upgrade, d.breakSearch, d.changeByHand, d.prepareRelease} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// upgrade changes the version of Istio in the policy. Staging gets it, and the first wave of production waits.
func (d *demo) upgrade(ctx context.Context) error {
	if err := d.waitForWaves(ctx); err != nil {
		return err
	}
	if _, err := d.source.Commit(ctx, "Upgrade Istio to "+newIstio, policyFile(newIstio)); err != nil {
		return err
	}
	if err := d.waitForVersion(ctx, "staging", newIstio); err != nil {
		return err
	}
	_, err := d.waitForPull(ctx, waves()[0])
	return err
}

// breakSearch commits a slip of the pen in a kustomization.
func (d *demo) breakSearch(ctx context.Context) error {
	files := map[string]string{"clusters/staging/search/kustomization.yaml": strings.Replace(overlay("search", 2), "apps/search", "apps/serach", 1)}
	if _, err := d.source.Commit(ctx, "Run two replicas of search in staging", files); err != nil {
		return err
	}
	if _, err := d.source.InWork(ctx, "tag", breaking); err != nil {
		return err
	}
	return d.waitForState(ctx, brokenPipeline, "Failing", "Stalled")
}

// changeByHand commits to the rendered branch, past Prerig.
func (d *demo) changeByHand(ctx context.Context) error {
	if _, err := d.rendered.InWork(ctx, "fetch", "-q", "origin"); err != nil {
		return err
	}
	if _, err := d.rendered.InWork(ctx, "checkout", "-q", "-B", stagingBranch, "origin/"+stagingBranch); err != nil {
		return err
	}
	file, err := d.rendered.InWork(ctx, "grep", "-l", "kind: Deployment", "--", "staging/checkout")
	if err != nil {
		return err
	}
	text, err := d.rendered.InWork(ctx, "show", "HEAD:"+file)
	if err != nil {
		return err
	}
	if err := testbed.Write(d.rendered.Work, map[string]string{file: strings.Replace(text, "replicas: 1\n", "replicas: 30\n", 1) + "\n"}); err != nil {
		return err
	}
	for _, args := range [][]string{{"commit", "-q", "-a", "--author=Kim <kim@example.com>", "-m", "Scale checkout up by hand"}, {"push", "-q", "origin", "HEAD"}} {
		if _, err := d.rendered.InWork(ctx, args...); err != nil {
			return err
		}
	}
	return d.waitForState(ctx, driftedPipeline, "Drifted")
}

// prepareRelease makes a commit for people to pick.
func (d *demo) prepareRelease(ctx context.Context) error {
	if _, err := d.source.InWork(ctx, "checkout", "-q", "-b", releasing); err != nil {
		return err
	}
	if _, err := d.source.Commit(ctx, "Release catalog 1.1", map[string]string{"apps/catalog/app.yaml": manifests("catalog", "1.1")}); err != nil {
		return err
	}
	_, err := d.source.InWork(ctx, "checkout", "-q", "main")
	return err
}

// apply pretends to be the controllers in the clusters: it reports a commit as deployed, on every cluster whose
// branch it is of.
func (d *demo) apply(r *host.Repository, branch, commit string) {
	if r != d.rendered {
		return
	}
	for _, c := range clusters {
		if c.branch == branch {
			go func() {
				r.SetStatus(commit, "deployed/"+c.name, "pending", "A pretended controller applies it")
				time.Sleep(time.Second)
				r.SetStatus(commit, "deployed/"+c.name, "success", "A pretended controller has applied it")
			}()
		}
	}
}

// overview counts the proxies on the branches that are applied to the clusters.
func (d *demo) overview(ctx context.Context) (host.Overview, error) {
	out := host.Overview{Page: d.page}
	for _, c := range clusters {
		shown := host.Cluster{Name: c.name, Branch: c.branch, Repository: d.rendered.Name}
		for _, version := range []string{oldIstio, newIstio} {
			if n := countProxies(ctx, d.rendered, c.name, version); n > 0 {
				shown.Versions = append(shown.Versions, host.Count{Version: version, Proxies: n})
			}
		}
		out.Clusters = append(out.Clusters, shown)
	}
	return out, nil
}

// countProxies returns the number of rendered manifests of a cluster with a proxy of a version.
func countProxies(ctx context.Context, rendered *host.Repository, name, version string) int {
	i := slices.IndexFunc(clusters, func(c cluster) bool { return c.name == name })
	out, err := rendered.Git(ctx, "grep", "-l", "-F", "proxyv2:"+version, "refs/heads/"+clusters[i].branch, "--", name)
	if err != nil || out == "" {
		return 0 // git grep fails if it finds nothing, or there is no branch yet
	}
	return strings.Count(out, "\n") + 1
}

// injected is the number of applications of a cluster that get a proxy.
func injected(name string) int {
	i := slices.IndexFunc(clusters, func(c cluster) bool { return c.name == name })
	return len(slices.DeleteFunc(slices.Clone(clusters[i].apps), func(app string) bool { return app == "mail" }))
}

func (d *demo) waitForVersion(ctx context.Context, name, version string) error {
	return d.wait(ctx, "Istio "+version+" on "+name, func() bool { return countProxies(ctx, d.rendered, name, version) >= injected(name) })
}

// waitForPull waits for the open pull request of a wave.
func (d *demo) waitForPull(ctx context.Context, wave string) (number int64, err error) {
	err = d.wait(ctx, "the pull request for "+wave, func() bool {
		for _, n := range d.rendered.Open() {
			if strings.HasSuffix(d.rendered.Head(n), "/"+wave) {
				number = n
			}
		}
		return number > 0
	})
	return number, err
}

// waitForState waits until a pipeline is in one of some states.
func (d *demo) waitForState(ctx context.Context, name string, states ...string) error {
	return d.wait(ctx, name+" to be "+strings.Join(states, " or "), func() bool {
		var found []struct{ Name, State string }
		if askDaemon(ctx, d.page+"/api/v1/pipelines", &found) != nil {
			return false
		}
		for _, one := range found {
			if one.Name == name && slices.Contains(states, one.State) {
				return true
			}
		}
		return false
	})
}

// waitForWaves waits until no wave has anything to merge or to verify.
func (d *demo) waitForWaves(ctx context.Context) error {
	return d.wait(ctx, "the waves to end", func() bool {
		var found struct {
			Promotions []struct{ Stages []struct{ State string } }
		}
		if askDaemon(ctx, d.page+"/api/v1/promotions", &found) != nil || len(found.Promotions) == 0 {
			return false
		}
		for _, p := range found.Promotions {
			for _, s := range p.Stages {
				if s.State != "Done" && s.State != "Idle" {
					return false
				}
			}
		}
		return true
	})
}

// askDaemon reads from the daemon's API, which needs no token on loopback.
func askDaemon(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

func (d *demo) wait(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w\n%s", what, ctx.Err(), d.daemon.Problems())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}
