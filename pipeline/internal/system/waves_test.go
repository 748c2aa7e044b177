// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/cli"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server"
)

// waveOf is the wave of each of ten clusters.
var waveOf = []string{"canary", "eu", "eu", "eu", "us", "us", "us", "asia", "asia", "asia"}

var waveOrder = []string{"canary", "eu", "us", "asia"}

// meshed is reviews of applications on ten clusters, with Istio's proxies, that go in four waves.
type meshed struct {
	*reviews
	applications int
}

func newMeshed(t *testing.T, applications int) *meshed {
	m := &meshed{newReviews(t, 0), applications}
	m.c.NATS.AckWait = config.Default().NATS.AckWait // a thousand locks that last two seconds are more than a busy machine renews
	files, pipelines := m.policy("1.28.0"), ""
	for i := range applications {
		name, cluster := fmt.Sprintf("app%04d", i), i%len(waveOf)
		files[fmt.Sprintf("clusters/c%d/%s/app.yaml", cluster, name)] = deployment(name, "image:1")
		pipelines += fmt.Sprintf(`---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s, namespace: team, labels: {wave: %[2]s, cluster: c%[3]d}}
spec:
  source: {git: {url: "%[4]s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {path: clusters/c%[3]d/%[1]s}
  policies: [{path: policy.yaml}]
  publish:
  - git:
      url: "%[4]s/shop/rendered.git"
      branch: main
      path: c%[3]d/%[1]s
      secretRef: {name: gitea}
      pullRequest: {provider: Gitea, groupBy: Label, label: wave, waves: {order: [%[5]s], statuses: ["deployed/*"], greenFor: 1s}}
  interval: 1m
`, name, waveOf[cluster], cluster, m.proxy.URL, strings.Join(waveOrder, ", "))
	}
	m.commit("Istio 1.28.0", files)
	m.write(filepath.Join(m.c.Pipelines, "apps.yaml"), pipelines)
	return m
}

// eventually waits for what takes a machine that has other work a while with a thousand pipelines, and leaves it time for that.
func (m *meshed) eventually(what string, check func() string) {
	m.t.Helper()
	pause, longest := 200*time.Millisecond, 6*time.Minute
	if m.applications > 100 {
		pause, longest = 3*time.Second, 40*time.Minute
	}
	for deadline := time.Now().Add(longest); ; time.Sleep(pause) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: %s", what, problem)
		}
	}
}

// policy is what injects a version of Istio.
func (m *meshed) policy(version string) map[string]string {
	return map[string]string{"policy.yaml": `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec:
  istio: {injector: {builtIn: istio, overrides: {global: {tag: ` + version + `}, sidecarInjectorWebhook: {enableNamespacesByDefault: true}}}}
`}
}

// stages are the waves as the API tells of them.
func (m *meshed) stages() []promotion.StageStatus {
	m.t.Helper()
	var all server.Promotions
	m.api(http.MethodGet, "/api/v1/promotions", nil, &all)
	if len(all.Promotions) != 1 {
		return nil
	}
	return all.Promotions[0].Stages
}

// drive takes a version through all waves, as people and what deploys do. red stops the second one for a while.
func (m *meshed) drive(version string, red bool) {
	m.t.Helper()
	before := int64(0)
	if all := m.pulls("all"); len(all) > 0 {
		before = all[0].Number
	}
	for i, wave := range waveOrder {
		begin := time.Now()
		open := m.opened(i, wave, before, version)
		m.t.Logf("the pull request of %s was there after %s", wave, time.Since(begin).Round(time.Second))
		m.merge(open.Number, "merge")
		commit := m.inRendered("rev-parse", "main")
		state := func(state string) {
			in := map[string]any{"context": "deployed/" + wave, "state": state}
			m.gitea.Must(m.ann, http.MethodPost, "/repos/shop/rendered/statuses/"+commit, in, nil)
		}
		if red && i == 1 {
			state("failure")
			m.eventually("waiting for the waves to stop", func() string {
				if s := m.stages(); len(s) != 4 || s[1].State != promotion.StageStopped || s[2].State != promotion.StageWaiting {
					return fmt.Sprintf("they are %+v", s)
				}
				return ""
			})
			if said := m.said("daemon", "status"); !strings.Contains(said, "wave 2 of 4: eu") || !strings.Contains(said, "deployed/eu is red") || len(m.pulls("open")) > 0 {
				m.t.Errorf("prerig daemon status says %s", said)
			}
		}
		state("success")
	}
	m.eventually("waiting for the last wave", func() string {
		for _, s := range m.stages() {
			if s.State != promotion.StageDone {
				return fmt.Sprintf("%+v", s)
			}
		}
		return ""
	})
	if all := m.pulls("all"); all[0].Number != before+4 {
		m.t.Errorf("there are pull requests up to %d, and before up to %d", all[0].Number, before)
	}
}

// opened waits for the pull request of a wave, which is the only one, with all of the wave's pipelines and at most three groups.
func (m *meshed) opened(i int, wave string, before int64, version string) (found giteaPull) {
	m.t.Helper()
	m.eventually("waiting for the pull request of "+wave, func() string {
		open := m.pulls("open")
		if len(open) != 1 || !strings.HasSuffix(open[0].Head.Label, "/"+wave) {
			return fmt.Sprintf("open are %+v; %+v", open, m.stages())
		}
		found = open[0]
		for c, of := range waveOf {
			if of != wave {
				continue
			}
			if n := len(strings.Fields(m.inRendered("grep", "-l", "proxyv2:"+version, found.Head.SHA, "--", fmt.Sprintf("c%d", c)))); n != m.applications/len(waveOf) {
				return fmt.Sprintf("c%d has %d of %d", c, n, m.applications/len(waveOf))
			}
		}
		return ""
	})
	if found.Number != before+int64(i)+1 {
		m.t.Errorf("wave %s has pull request %d, and there were %d before", wave, found.Number, before)
	}
	if groups := strings.Count(found.Body, ": the same in "); before > 0 && (groups < 1 || groups > 3) {
		m.t.Errorf("the body of wave %s has %d groups:\n%s", wave, groups, found.Body)
	}
	return found
}

// said is what a command prints.
func (m *meshed) said(args ...string) string {
	m.t.Helper()
	var out, problems bytes.Buffer
	args = append(args[:1:1], append([]string{"--state", m.c.State}, args[1:]...)...)
	if code := cli.Main(context.Background(), args, cli.Streams{Out: &out, Err: &problems}, "test"); code != cli.ExitOK {
		m.t.Errorf("prerig %s ended with %d: %s", args[0], code, problems.String())
	}
	return out.String() + problems.String()
}

// api asks the daemon's page.
func (m *meshed) api(method, path string, in, out any) {
	m.t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		m.t.Fatal(err)
	}
	request, err := http.NewRequest(method, "http://"+m.page+path, bytes.NewReader(data))
	if err != nil {
		m.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return // it is being started
	}
	defer response.Body.Close()
	_ = json.NewDecoder(response.Body).Decode(out)
}

// TestGiteaWaves upgrades Istio over ten clusters in four waves, with a red status in the second, kills in between, and rolls the last
// wave back.
func TestGiteaWaves(t *testing.T) {
	applications := 20
	if full() {
		applications = 1000
	}
	if n, err := strconv.Atoi(os.Getenv("PRERIG_WAVES")); err == nil {
		applications = n
	}
	m := newMeshed(t, applications)
	m.serveReviews()
	begin := time.Now()
	m.drive("1.28.0", false)
	first := time.Since(begin)
	before := m.inRendered("rev-parse", "main")
	begin = time.Now()
	m.commit("Istio 1.29.0", m.policy("1.29.0"))
	m.drive("1.29.0", true)
	t.Logf("%d pipelines on 10 clusters: the first train took %s, the upgrade %s", applications, first.Round(time.Second), time.Since(begin).Round(time.Second))
	asia := []string{"c7", "c8", "c9"}
	said := m.said("daemon", "rollback", "team/app0007")
	if !strings.Contains(said, "takes it back and waits for a merge") {
		t.Errorf("prerig daemon rollback says %s", said)
	}
	m.daemon.kill()
	m.daemon.awaitUp(m.patience)
	open := m.pulls("open")
	if len(open) != 1 || !strings.HasPrefix(open[0].Title, "Roll back ") {
		t.Fatalf("open are %+v", open)
	}
	m.merge(open[0].Number, "squash")
	for c := range waveOf {
		dir := fmt.Sprintf("c%d", c)
		now, then := m.inRendered("rev-parse", "main:"+dir), m.inRendered("rev-parse", before+":"+dir)
		if (now == then) != slices.Contains(asia, dir) {
			t.Errorf("%s is %s after the rollback, and was %s before the upgrade", dir, now, then)
		}
	}
	m.eventually("waiting for the rollback to be known as done", func() string {
		if said := m.said("daemon", "status"); !strings.Contains(said, "Done") || strings.Contains(said, "Asked") {
			return said
		}
		return ""
	})
	if said := m.said("daemon", "status", "team/app0007"); !strings.Contains(said, "on hold") {
		t.Errorf("prerig daemon status says %s", said)
	}
	if open := m.pulls("open"); len(open) > 0 {
		t.Errorf("open are %+v", open)
	}
}
