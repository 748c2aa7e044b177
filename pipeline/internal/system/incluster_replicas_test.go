// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// deleteNow is without further ado.
var deleteNow = metav1.DeleteOptions{}

// TestInClusterReplicas has two daemons on one queue, of which one is killed after each change that is asked for by an annotation: each
// change is published, once, and the status and the events tell of it.
func TestInClusterReplicas(t *testing.T) {
	c := newInCluster(t, "replicas")
	f := prepareAlone(t, nil)
	c.use(f, "replicas")
	f.c.Workers, f.c.NATS.URL, f.c.NATS.AckWait = 1, startNATS(t), 3*time.Second
	names, rounds := []string{"a", "b", "c"}, 3
	if full() {
		rounds = 30
	}
	files := func(version int) map[string]string {
		out := map[string]string{}
		for _, name := range names {
			out["apps/"+name+"/web.yaml"] = deployment(name, fmt.Sprintf("web:%d", version))
		}
		return out
	}
	f.repository.Commit("version 0", files(0))
	var replicas []*process
	logs := filepath.Join(t.TempDir(), "logs")
	for i := range 2 {
		own := *f.c
		own.State = filepath.Join(f.c.State, fmt.Sprint(i))
		text, err := json.Marshal(own)
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, supervise(t, logs, []string{"PRERIG_TEST_DAEMON=" + string(text), "PRERIG_TEST_RENDERER=" + renderer(t)[0]}))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of what both logged:\n%s", tail(logs, 16<<10))
		}
	})
	for _, name := range names {
		c.apply(renderPipelines, c.parse(strings.Replace(pipelineYAML(name, f.repository.URL), "namespace: team", "namespace: replicas", 1)))
	}
	kills := 0
	for round := range rounds + 1 {
		asked := fmt.Sprintf("round-%d", round)
		if round > 0 {
			f.repository.Commit(fmt.Sprintf("version %d", round), files(round))
		}
		for _, name := range names {
			c.annotate("replicas", name, v1alpha1.RequestAnnotation, asked)
		}
		if round > 0 {
			time.Sleep(rand.N(300 * time.Millisecond)) // a kill may come at any moment
			if replicas[round%2].kill() {
				kills++
			}
		}
		for _, name := range names {
			c.await(fmt.Sprintf("round %d of %s", round, name), func(context.Context) error {
				got := f.rendered(fmt.Sprintf("%s/shop/deployment-%[1]s.yaml", name))
				if handled := statusOf(t, c.pipeline("replicas", name)).LastHandledReconcileAt; handled != asked || !strings.Contains(got, fmt.Sprintf("image: web:%d\n", round)) {
					return fmt.Errorf("the last request handled is %q, and published is\n%s", handled, got)
				}
				return nil
			})
		}
	}
	if kills == 0 {
		t.Error("no replica was killed")
	}
	for _, name := range names {
		c.reads(renderPipelines, "replicas", name, kstatus.CurrentStatus, "object")
		commits := strings.Fields(f.repository.Git("log", "--format=%H", "rendered", "--", name))
		if len(commits) != rounds+1 {
			t.Errorf("%s was published %d times, want %d", name, len(commits), rounds+1)
		}
		c.hasEvent("replicas", name, "Normal", "Published")
	}
}
