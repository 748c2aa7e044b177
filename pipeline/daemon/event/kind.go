// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errWrongKind is the cause of a refusal of what another kind of sender sends. An answer of success would hide that the sender is set
// up for the wrong receiver.
var errWrongKind = errors.New("it is not of the receiver's provider")

// recogniser reports whether a delivery comes from a kind of sender, whatever its event. fields are those of the
// body's object, or nil for a body that is not an object.
type recogniser struct {
	provider Provider
	is       func(h http.Header, fields map[string]json.RawMessage) bool
}

// recognisers know the deliveries of each provider. Forgejo, Gitea and Gogs also set the headers of those whose form they have taken
// over, so that they come first; generic senders may send anything, and are not known.
var recognisers = []recogniser{
	{Forgejo, hasHeader("X-Forgejo-Event")},
	{Gitea, hasHeader("X-Gitea-Event")},
	{Gogs, hasHeader("X-Gogs-Event")},
	{GitHub, hasHeader("X-Github-Event")},
	{GitLab, hasHeader("X-Gitlab-Event")},
	{BitbucketServer, isBitbucketServer},
	{BitbucketCloud, isBitbucketCloud},
	{Nexus, hasHeader("X-Nexus-Webhook-Id")},
	{AzureDevOps, hasFields("eventType", "publisherId")},
	{Flux, hasFields("involvedObject")},
	{Harbor, hasFields("event_data")},
	{Harbor, isHarborCloudEvent},
	{ECR, hasFields("detail-type", "detail", "source")},
	{ArtifactRegistry, hasFields("message", "subscription")},
	{Artifactory, hasFields("domain", "event_type")},
	{ACR, hasFields("action", "target", "request")},
	{ACR, isACRPing},
	{Distribution, hasFields("events")},
	{DockerHub, hasFields("push_data")},
	{Quay, hasFields("docker_url")},
	{CloudEvents, isCloudEvent},
}

func hasHeader(name string) func(http.Header, map[string]json.RawMessage) bool {
	return func(h http.Header, _ map[string]json.RawMessage) bool { return h.Get(name) != "" }
}

func hasFields(names ...string) func(http.Header, map[string]json.RawMessage) bool {
	return func(_ http.Header, fields map[string]json.RawMessage) bool {
		for _, name := range names {
			if _, ok := fields[name]; !ok {
				return false
			}
		}
		return true
	}
}

// isCloudEvent knows the binary, structured and batch modes of CloudEvents over HTTP.
func isCloudEvent(h http.Header, fields map[string]json.RawMessage) bool {
	_, structured := fields["specversion"]
	return structured || h.Get("Ce-Specversion") != "" || strings.HasPrefix(h.Get("Content-Type"), batchType)
}

// isBitbucketServer knows the events of Bitbucket Data Center by their names, as the header is also that of Bitbucket Cloud.
func isBitbucketServer(h http.Header, _ map[string]json.RawMessage) bool {
	for _, start := range []string{"repo:refs_changed", "repo:modified", "repo:forked", "repo:comment:", "repo:secret_detected", "pr:", "mirror:", "project:", "diagnostics:"} {
		if strings.HasPrefix(h.Get("X-Event-Key"), start) {
			return true
		}
	}
	return false
}

func isBitbucketCloud(h http.Header, fields map[string]json.RawMessage) bool {
	return h.Get("X-Event-Key") != "" && !isBitbucketServer(h, fields)
}

// isHarborCloudEvent knows the other form in which Harbor sends.
func isHarborCloudEvent(h http.Header, fields map[string]json.RawMessage) bool {
	return isCloudEvent(h, fields) && (strings.HasPrefix(h.Get("Ce-Type"), "harbor.") || strings.HasPrefix(string(fields["type"]), `"harbor.`))
}

// isACRPing knows what Azure Container Registry sends to try a webhook.
func isACRPing(_ http.Header, fields map[string]json.RawMessage) bool {
	return string(fields["action"]) == `"ping"` && hasFields("id", "timestamp")(nil, fields)
}

// checkKind returns an error that wraps errWrongKind if a delivery is not from the provider. cause is the error of
// reading its body, or nil if it contained no change.
func checkKind(provider Provider, h http.Header, body []byte, cause error) error {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // a form or a list has no fields
	other := Provider("")
	for _, r := range recognisers {
		switch {
		case !r.is(h, fields):
		case r.provider == provider:
			return cause
		case other == "":
			other = r.provider
		}
	}
	switch {
	case other != "":
		return fmt.Errorf("%w: the receiver's provider is %s, and the delivery looks like one of %s", errWrongKind, provider, other)
	case cause != nil || provider == Generic:
		return cause
	}
	return fmt.Errorf("%w: the receiver's provider is %s, which sends nothing like it", errWrongKind, provider)
}
