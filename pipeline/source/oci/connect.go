// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package oci reads artifacts out of registries as Flux' source-controller does: one layer, a compressed archive. The
// archive is bounded and may not name anything outside of itself. Credentials come from a secret only: no helper program
// and no file of the user is asked.
package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/process/trust"
)

// Media types and annotations of Flux' artifacts (fluxcd/pkg/oci).
const (
	ConfigMediaType = "application/vnd.cncf.flux.config.v1+json"
	LayerMediaType  = "application/vnd.cncf.flux.content.v1.tar+gzip"

	AnnotationCreated  = "org.opencontainers.image.created"
	AnnotationSource   = "org.opencontainers.image.source"
	AnnotationRevision = "org.opencontainers.image.revision"
)

// Keys of a secret.
const (
	KeyDockerConfig = ".dockerconfigjson"
	KeyUsername     = "username"
	KeyPassword     = "password"
	KeyCA           = "ca.crt"
)

// Registry is a repository in a registry with the credentials to reach it.
type Registry struct {
	// Repository without a tag.
	Repository name.Repository
	// Dir is where contents of what was published are put that are too much for memory; "" means that all are in
	// memory.
	Dir       string
	auth      authn.Authenticator
	transport http.RoundTripper
}

// Connect parses an oci:// URL and the keys of a secret. It does not contact the registry. The dialer connects to
// it; nil means a dialer with the default rules.
func Connect(url string, secret map[string][]byte, insecure bool, dialer *egress.Dialer) (*Registry, error) {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(strings.TrimPrefix(url, "oci://"), options...)
	if err != nil {
		return nil, fmt.Errorf("reading the registry's URL: %w", err)
	}
	for part := range strings.SplitSeq(repository.RepositoryStr(), "/") {
		if part == "" || part == "." || part == ".." {
			return nil, errors.New("reading the registry's URL: its path has an empty or relative part")
		}
	}
	auth, err := newAuthenticator(repository, secret)
	if err != nil {
		return nil, err
	}
	next, err := NewTransport(secret[KeyCA], dialer)
	if err != nil {
		return nil, err
	}
	return &Registry{Repository: repository, auth: auth, transport: &answerChecker{next, repository, insecure}}, nil
}

// Options for a call to the registry.
func (r *Registry) Options(more ...remote.Option) []remote.Option {
	return append([]remote.Option{remote.WithAuth(r.auth), remote.WithTransport(r.transport)}, more...)
}

// OptionsVia is Options with something between: via returns what the calls use in the place of a transport.
func (r *Registry) OptionsVia(via func(http.RoundTripper) http.RoundTripper) []remote.Option {
	return []remote.Option{remote.WithAuth(r.auth), remote.WithTransport(via(r.transport))}
}

// ForPush logs in as one who pushes, and returns the registry with this login for all that is asked.
func (r *Registry) ForPush(ctx context.Context) (*Registry, error) {
	login, err := transport.NewWithContext(ctx, r.Repository.Registry, r.auth, r.transport,
		[]string{r.Repository.Scope(transport.PushScope)})
	if err != nil {
		return nil, err
	}
	return &Registry{Repository: r.Repository, Dir: r.Dir, auth: r.auth, transport: login}, nil
}

// CheckPush returns an error if the registry does not accept artifacts with these credentials. It begins an upload,
// since some registries check permissions only then, and cancels it: no content is stored.
func (r *Registry) CheckPush(ctx context.Context) error {
	err := remote.CheckPushPermission(r.Repository.Tag("latest"), oneKey{r.auth}, inContext{ctx, r.transport})
	if err != nil {
		return fmt.Errorf("asking to push to %s: %w", r.Repository, err)
	}
	return nil
}

// oneKey is a keychain with one key.
type oneKey struct{ auth authn.Authenticator }

// Resolve implements authn.Keychain.
func (k oneKey) Resolve(authn.Resource) (authn.Authenticator, error) { return k.auth, nil }

// inContext makes requests end with a context, for calls that take none.
type inContext struct {
	ctx context.Context
	to  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t inContext) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.to.RoundTrip(request.WithContext(t.ctx))
}

// NewTransport returns a transport that trusts the system's authorities and those in ca, which are PEM certificates
// and may be empty. A nil dialer means one with the default rules.
func NewTransport(ca []byte, dialer *egress.Dialer) (http.RoundTripper, error) {
	shared := egress.OrDefault(dialer).Transport()
	if len(ca) == 0 {
		return shared, nil
	}
	trusted, ok := trust.Authorities(ca)
	if !ok {
		return nil, fmt.Errorf("secret's %s holds no PEM certificate", KeyCA)
	}
	t := shared.Clone()
	t.TLSClientConfig = trusted
	return t, nil
}

type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

func newAuthenticator(repository name.Repository, secret map[string][]byte) (authn.Authenticator, error) {
	if password := string(secret[KeyPassword]); password != "" {
		return &authn.Basic{Username: string(secret[KeyUsername]), Password: password}, nil
	}
	if len(secret[KeyDockerConfig]) == 0 {
		return authn.Anonymous, nil
	}
	var config dockerConfig
	if err := json.Unmarshal(secret[KeyDockerConfig], &config); err != nil {
		// The cause could quote the password.
		return nil, fmt.Errorf("secret's %s is not JSON", KeyDockerConfig)
	}
	host := repository.RegistryStr()
	entry, ok := config.findEntry(host, repository.RepositoryStr())
	if !ok {
		return nil, fmt.Errorf("secret's %s has no entry for %s", KeyDockerConfig, repository)
	}
	if entry.Auth != "" {
		plain, err := base64.StdEncoding.DecodeString(entry.Auth)
		if err != nil {
			return nil, errors.New("secret's auth for " + host + " is not base64")
		}
		entry.Username, entry.Password, _ = strings.Cut(string(plain), ":")
	}
	return &authn.Basic{Username: entry.Username, Password: entry.Password}, nil
}

// findEntry returns the one that names the most of a repository's path, as kubelet does. The path may be that of the
// registry's API instead, which docker writes for Docker Hub.
func (c dockerConfig) findEntry(host, repository string) (found dockerAuth, ok bool) {
	longest := ""
	for _, key := range slices.Sorted(maps.Keys(c.Auths)) {
		at, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://"), "/")
		if at != host && !(host == name.DefaultRegistry && at == "docker.io") {
			continue
		}
		if path = strings.Trim(path, "/"); path == "v1" || path == "v2" {
			path = ""
		}
		if path != "" && !strings.HasPrefix(repository+"/", path+"/") {
			continue
		}
		if !ok || len(path) > len(longest) {
			found, longest, ok = c.Auths[key], path, true
		}
	}
	return found, ok
}
