// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// parseDistribution reads the notifications of the distribution registry. Pushes of blobs, and of manifests without
// a tag, are no changes that a pipeline could follow.
func parseDistribution(_ http.Header, body []byte) ([]Change, error) {
	var p struct {
		Events []struct {
			Action string
			Target struct {
				MediaType, Digest, Repository, Tag, URL string
			}
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading registry notifications: %w", err)
	}
	var out []Change
	for _, e := range p.Events {
		if e.Action != "push" || e.Target.Tag == "" || e.Target.Repository == "" {
			continue
		}
		// The host of the request is the pusher's name for the registry, which may differ from ours. A receiver is
		// set up for one registry, so the path is sufficient.
		out = append(out, Change{OCI: &OCIChange{Repository: e.Target.Repository, Tag: e.Target.Tag, Digest: e.Target.Digest}})
	}
	return out, nil
}

// parseHarbor reads Harbor's default format, and its CloudEvents one.
func parseHarbor(h http.Header, body []byte) ([]Change, error) {
	var p struct {
		Type      string
		EventData harborData `json:"event_data"`
		Data      harborData
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a Harbor event: %w", err)
	}
	switch p.Type {
	case "PUSH_ARTIFACT", "pushImage":
		return p.EventData.toChanges()
	case "harbor.artifact.pushed":
		return p.Data.toChanges()
	}
	if h.Get("Ce-Type") == "harbor.artifact.pushed" {
		var d harborData
		if err := json.Unmarshal(body, &d); err != nil {
			return nil, fmt.Errorf("reading a Harbor event: %w", err)
		}
		return d.toChanges()
	}
	return nil, nil
}

type harborData struct {
	Resources []struct {
		Digest, Tag string
		ResourceURL string `json:"resource_url"`
	}
	Repository struct {
		RepoFullName string `json:"repo_full_name"`
	}
}

func (d harborData) toChanges() ([]Change, error) {
	var out []Change
	for _, r := range d.Resources {
		if r.Tag == "" || strings.HasPrefix(r.Tag, "sha256:") {
			continue // pushed by its digest alone
		}
		repository, host := d.Repository.RepoFullName, false
		if name := withoutTag(r.ResourceURL); name != "" {
			repository, host = name, true
		}
		if repository == "" {
			return nil, fmt.Errorf("reading a Harbor event: it names no repository")
		}
		out = append(out, Change{OCI: &OCIChange{Repository: repository, Host: host, Tag: r.Tag, Digest: r.Digest}})
	}
	return out, nil
}

// withoutTag cuts the tag and digest off an image's name.
func withoutTag(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}

// parseQuay reads Quay's repository push.
func parseQuay(_ http.Header, body []byte) ([]Change, error) {
	var p struct {
		DockerURL   string          `json:"docker_url"`
		UpdatedTags json.RawMessage `json:"updated_tags"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a Quay event: %w", err)
	}
	if p.DockerURL == "" || len(p.UpdatedTags) == 0 {
		return nil, nil
	}
	// Quay sends a list of names, and sent a map of name to digest before.
	var tags []string
	digests := map[string]string{}
	if err := json.Unmarshal(p.UpdatedTags, &tags); err != nil {
		if err := json.Unmarshal(p.UpdatedTags, &digests); err != nil {
			return nil, fmt.Errorf("reading a Quay event: updated_tags is neither a list nor a map")
		}
		tags = slices.Sorted(maps.Keys(digests))
	}
	var out []Change
	for _, t := range tags {
		out = append(out, Change{OCI: &OCIChange{Repository: p.DockerURL, Host: true, Tag: t, Digest: digests[t]}})
	}
	return out, nil
}

// parseDockerHub reads Docker Hub's push.
func parseDockerHub(_ http.Header, body []byte) ([]Change, error) {
	var p struct {
		PushData   struct{ Tag string } `json:"push_data"`
		Repository struct {
			RepoName string `json:"repo_name"`
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a Docker Hub event: %w", err)
	}
	if p.Repository.RepoName == "" {
		return nil, fmt.Errorf("reading a Docker Hub event: it names no repository")
	}
	return []Change{{OCI: &OCIChange{Repository: "docker.io/" + p.Repository.RepoName, Host: true, Tag: p.PushData.Tag}}}, nil
}

// parseGitHubPackage reads the events package and registry_package, which GitHub's container registry sends.
func parseGitHubPackage(_ http.Header, body []byte) ([]Change, error) {
	type published struct {
		Name        string
		Namespace   string
		Ecosystem   string
		PackageType string `json:"package_type"`
		Version     struct {
			Version       string
			PackageURL    string `json:"package_url"`
			ContainerMeta struct {
				Tag struct{ Name, Digest string }
			} `json:"container_metadata"`
		} `json:"package_version"`
	}
	var p struct {
		Action          string
		Package         *published
		RegistryPackage *published `json:"registry_package"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a package event: %w", err)
	}
	pkg := p.Package
	if pkg == nil {
		pkg = p.RegistryPackage
	}
	if pkg == nil || (p.Action != "published" && p.Action != "updated") || !strings.EqualFold(pkg.PackageType, "container") {
		return nil, nil
	}
	tag := pkg.Version.ContainerMeta.Tag.Name
	if tag == "" {
		return nil, nil // a platform's image of an index, or a signature
	}
	repository := withoutTag(pkg.Version.PackageURL)
	if repository == "" && (pkg.Namespace == "" || pkg.Name == "") {
		return nil, fmt.Errorf("reading a package event: it names no package")
	}
	if repository == "" {
		repository = "ghcr.io/" + pkg.Namespace + "/" + pkg.Name
	}
	digest := pkg.Version.ContainerMeta.Tag.Digest
	if digest == "" && strings.HasPrefix(pkg.Version.Version, "sha256:") {
		digest = pkg.Version.Version
	}
	return []Change{{OCI: &OCIChange{Repository: repository, Host: true, Tag: tag, Digest: digest}}}, nil
}
