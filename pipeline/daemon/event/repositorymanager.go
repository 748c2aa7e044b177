// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// verifyArtifactory accepts the secret itself, or an HMAC over the body if Artifactory is configured to use the
// secret for signing. Both are in the same header.
func verifyArtifactory(h http.Header, body, secret []byte, now time.Time) error {
	if plainToken("X-Jfrog-Event-Auth")(h, body, secret, now) == nil {
		return nil
	}
	return hmacHex("X-Jfrog-Event-Auth", true)(h, body, secret, now)
}

// parseArtifactory reads the docker domain of Artifactory's webhooks (jfrog.com/help, "Docker Webhook Events"). Its
// repositories can be reached as HOST/KEY/PATH, KEY.HOST/PATH or at a port of their own, and the payload does not
// include which, so that changes contain only paths.
func parseArtifactory(_ http.Header, body []byte) ([]Change, error) {
	var e struct {
		Domain string
		Type   string `json:"event_type"`
		Data   struct {
			Key    string `json:"repo_key"`
			Image  string `json:"image_name"`
			Path   string
			Tag    string
			SHA256 string
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("reading an event of Artifactory: %w", err)
	}
	d := e.Data
	if e.Domain != "docker" || e.Type != "pushed" || d.Tag == "" || strings.HasPrefix(d.Tag, "sha256:") {
		return nil, nil
	}
	// The name of an image in directories is only in its path.
	image, _, nested := strings.Cut(d.Path, "/"+d.Tag+"/")
	if !nested {
		image = d.Image
	}
	if image == "" || d.Key == "" {
		return nil, errors.New("reading an event of Artifactory: it names no image or repository")
	}
	digest := ""
	if d.SHA256 != "" {
		digest = "sha256:" + d.SHA256
	}
	return pathChanges(d.Key, image, d.Tag, digest), nil
}

// parseNexus reads the repository webhooks of Sonatype Nexus (help.sonatype.com, "Example Headers and Payloads"), by components for new
// tags and by assets for tags that are pushed again. Neither names the registry's host.
func parseNexus(h http.Header, body []byte) ([]Change, error) {
	var e struct {
		Repository string `json:"repositoryName"`
		Action     string
		Component  struct{ Format, Name, Version string }
		Asset      struct{ Format, Name string }
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("reading an event of Nexus: %w", err)
	}
	if e.Action != "CREATED" && e.Action != "UPDATED" {
		return nil, nil
	}
	image, tag := "", ""
	switch h.Get("X-Nexus-Webhook-Id") {
	case "rm:repository:component":
		if e.Component.Format == "docker" {
			image, tag = e.Component.Name, e.Component.Version
		}
	case "rm:repository:asset":
		if e.Asset.Format == "docker" {
			image, tag, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.Asset.Name, "/"), "v2/"), "/manifests/")
		}
	}
	if image == "" || tag == "" || strings.HasPrefix(tag, "sha256:") {
		return nil, nil
	}
	return pathChanges(e.Repository, image, tag, ""), nil
}

// pathChanges returns the changes of an image at a server whose images can be reached both with and without the
// name of the server's repository before their own.
func pathChanges(repository, image, tag, digest string) []Change {
	return []Change{
		{OCI: &OCIChange{Repository: repository + "/" + image, Tag: tag, Digest: digest}},
		{OCI: &OCIChange{Repository: image, Tag: tag, Digest: digest}},
	}
}
