// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// azureRegistryEvent is an event of Azure Container Registry's webhooks (learn.microsoft.com, "Azure Container Registry webhook
// reference").
type azureRegistryEvent struct {
	Action string
	Target *struct{ Repository, Tag, Digest string }
	// Request is what has pushed. Its host is the registry's name as the one who pushed has written it.
	Request *struct{ Host string }
}

// parseACR reads pushes of images and charts. Pings and deletions yield no change.
func parseACR(_ http.Header, body []byte) ([]Change, error) {
	var e azureRegistryEvent
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("reading an event of Azure Container Registry: %w", err)
	}
	if e.Action != "push" && e.Action != "chart_push" || e.Target == nil || e.Target.Tag == "" {
		return nil, nil
	}
	if e.Target.Repository == "" {
		return nil, fmt.Errorf("reading an event of Azure Container Registry: it names no repository")
	}
	c := &OCIChange{Repository: e.Target.Repository, Tag: e.Target.Tag, Digest: e.Target.Digest}
	if e.Request != nil && strings.HasSuffix(strings.ToLower(e.Request.Host), ".azurecr.io") {
		c.Repository, c.Host = strings.ToLower(e.Request.Host)+"/"+c.Repository, true
	}
	return []Change{{OCI: c}}, nil
}

// parseECR reads the events that ECR sends to EventBridge, as an API destination forwards them unchanged
// (docs.aws.amazon.com, "Amazon ECR events and EventBridge").
func parseECR(_ http.Header, body []byte) ([]Change, error) {
	var e struct {
		Source, Account, Region string
		DetailType              string `json:"detail-type"`
		Detail                  struct {
			Result     string
			Action     string `json:"action-type"`
			Repository string `json:"repository-name"`
			Digest     string `json:"image-digest"`
			Tag        string `json:"image-tag"`
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("reading an event of EventBridge: %w", err)
	}
	d := e.Detail
	pushed := e.DetailType == "ECR Image Action" && d.Action == "PUSH" || e.DetailType == "ECR Replication Action" && d.Action == "REPLICATE"
	if e.Source != "aws.ecr" || !pushed || d.Result != "SUCCESS" || d.Tag == "" {
		return nil, nil
	}
	if d.Repository == "" || e.Account == "" || e.Region == "" {
		return nil, fmt.Errorf("reading an event of EventBridge: it lacks account, region or detail.repository-name; hand on the whole event")
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(e.Region, "cn-") {
		domain += ".cn"
	}
	host := e.Account + ".dkr.ecr." + e.Region + domain
	return []Change{{OCI: &OCIChange{Repository: host + "/" + d.Repository, Host: true, Tag: d.Tag, Digest: d.Digest}}}, nil
}

// pubSubPush is what a push subscription of Google Cloud's Pub/Sub sends (cloud.google.com/pubsub/docs/push).
type pubSubPush struct {
	Message struct {
		Data []byte
		ID   string `json:"messageId"`
	}
	Subscription string
}

// parseArtifactRegistry reads the messages of Artifact Registry on its topic gcr
// (cloud.google.com/artifact-registry/docs/configure-notifications).
func parseArtifactRegistry(_ http.Header, body []byte) ([]Change, error) {
	var p pubSubPush
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a message of Pub/Sub: %w", err)
	}
	var m struct{ Action, Digest, Tag string }
	if len(p.Message.Data) == 0 {
		return nil, fmt.Errorf("reading a message of Pub/Sub: it has no data; switch payload unwrapping off")
	}
	if err := json.Unmarshal(p.Message.Data, &m); err != nil {
		return nil, fmt.Errorf("reading a message of Artifact Registry: %w", err)
	}
	if m.Action != "INSERT" || m.Tag == "" {
		return nil, nil
	}
	repository := withoutTag(m.Tag)
	if repository == m.Tag {
		return nil, fmt.Errorf("reading a message of Artifact Registry: its tag is no HOST/REPOSITORY:TAG")
	}
	_, digest, _ := strings.Cut(m.Digest, "@")
	return []Change{{OCI: &OCIChange{Repository: repository, Host: true, Tag: strings.TrimPrefix(m.Tag, repository+":"), Digest: digest}}}, nil
}

// pubSubID is the message's own id, which stays the same for each delivery of it.
func pubSubID(_ http.Header, body []byte) string {
	var p pubSubPush
	if json.Unmarshal(body, &p) != nil || p.Message.ID == "" {
		return ""
	}
	return p.Subscription + "\n" + p.Message.ID
}
