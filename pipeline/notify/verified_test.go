// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/verify"
)

// TestVerified sends what was found in a cluster with the pods that somebody should look at, and no others.
func TestVerified(t *testing.T) {
	var header http.Header
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	n := notify.New(secret.Dir{Path: t.TempDir()}, nil)
	v := notify.Verified{Cluster: "prod", At: time.Unix(1700000000, 0), Wrong: 1, Report: &verify.Report{
		Counts: map[verify.State]int{verify.Current: 1, verify.Changed: 1},
		Pods:   []verify.Pod{{Name: "a", State: verify.Current}, {Name: "b", State: verify.Changed}},
	}}
	if err := n.Verified(t.Context(), &v1alpha1.Endpoint{URL: s.URL}, "", v); err != nil {
		t.Fatal(err)
	}
	var told struct {
		Cluster string
		Wrong   int
		Pods    []struct{ Name string }
	}
	if err := json.Unmarshal(body, &told); err != nil || told.Cluster != "prod" || told.Wrong != 1 || len(told.Pods) != 1 || told.Pods[0].Name != "b" {
		t.Errorf("told %s, %v", body, err)
	}
	if header.Get("Ce-Type") != "dev.prerig.verify.wrong" || header.Get("Ce-Subject") != "prod" || header.Get("Ce-Id") == "" {
		t.Errorf("the event's attributes are %v", header)
	}
	v.Wrong = 0
	if err := n.Verified(t.Context(), &v1alpha1.Endpoint{URL: s.URL}, "", v); err != nil || header.Get("Ce-Type") != "dev.prerig.verify.right" {
		t.Errorf("then %v, %v", header.Get("Ce-Type"), err)
	}
}
