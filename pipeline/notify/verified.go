// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/verify"
)

// Verified is the content of a notification about a cluster.
type Verified struct {
	// Cluster is its name, At when it was looked at.
	Cluster string
	At      time.Time
	// Wrong is how many pods are, as Report.Wrong has them.
	Wrong int
	// Report is all that was found.
	Report *verify.Report
}

// maxPods bounds the pods that an event names.
const maxPods = 100

// Verified sends a CloudEvent about a cluster: of type dev.prerig.verify.wrong if pods are not as committed,
// otherwise dev.prerig.verify.right. The secret is in a namespace of the directory of secrets. It lasts Timeout at
// most, because the next check of the cluster waits for it.
func (n *Notifier) Verified(ctx context.Context, e *v1alpha1.Endpoint, namespace string, v Verified) (err error) {
	if n.Observe != nil {
		defer func() { n.Observe(CloudEvent, err) }()
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	outcome := "right"
	if v.Wrong > 0 {
		outcome = "wrong"
	}
	pods := append([]verify.Pod{}, v.Report.Wrong()...)
	pods = pods[:min(len(pods), maxPods)]
	body, err := json.Marshal(map[string]any{
		"cluster": v.Cluster, "commit": v.Report.Commit, "counts": v.Report.Counts, "sidecars": v.Report.Sidecars,
		"wrong": v.Wrong, "pods": pods,
	})
	if err != nil {
		return err
	}
	token, err := n.readToken(ctx, namespace, e.SecretRef, secret.Purpose{URL: e.URL, Signs: true})
	if err != nil {
		return fmt.Errorf("sending what was found in the cluster %s: %w", v.Cluster, err)
	}
	h := http.Header{
		"Content-Type":   {"application/json"},
		"Ce-Specversion": {"1.0"},
		"Ce-Id":          {fmt.Sprintf("%s-%d", v.Cluster, v.At.UnixNano())},
		"Ce-Source":      {"/prerig.dev/clusters/" + v.Cluster},
		"Ce-Type":        {"dev.prerig.verify." + outcome},
		"Ce-Subject":     {v.Cluster},
		"Ce-Time":        {v.At.UTC().Format(time.RFC3339)},
	}
	signBody(h, token, body)
	if err := n.postWithRetries(n.permitOf(ctx, namespace, e.SecretRef, true), e.URL, h, body, stops{}); err != nil {
		return fmt.Errorf("sending what was found in the cluster %s: %w", v.Cluster, err)
	}
	return nil
}
