// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/telemetry"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// TestClusters has the pods by state, the versions, and clusters that could not be read.
func TestClusters(t *testing.T) {
	m := telemetry.NewMetrics("v")
	at := time.Unix(1700000000, 0)
	m.Clusters(func() []watch.Found {
		return []watch.Found{
			{Cluster: "prod", At: at, Report: &verify.Report{
				Counts: map[verify.State]int{verify.Current: 3, verify.Changed: 1},
				Sidecars: []verify.Sidecar{{Container: "istio-proxy", Pods: 4, Arrived: 3, Versions: []verify.SidecarVersion{
					{Version: "1.30.3", Pods: 3, Committed: 4}, {Version: "1.29.2", Pods: 1},
				}}},
			}},
			{Cluster: "down", At: at, Err: errors.New("down")},
			{Cluster: "new"},
		}
	})
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := answer.Body.String()
	for _, line := range []string{
		`prerig_verify_success{cluster="prod"} 1`, `prerig_verify_success{cluster="down"} 0`,
		`prerig_verify_pods{cluster="prod",state="Changed"} 1`, `prerig_verify_pods{cluster="prod",state="Foreign"} 0`,
		`prerig_verify_sidecar_pods{cluster="prod",container="istio-proxy",version="1.29.2"} 1`,
		`prerig_verify_sidecar_committed_pods{cluster="prod",container="istio-proxy",version="1.30.3"} 4`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(text, `cluster="new"`) {
		t.Error("a cluster that was not looked at yet has metrics")
	}
}
