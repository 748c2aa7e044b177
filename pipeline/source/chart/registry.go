// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// Media types of the layer that is a chart's archive: that of Helm since 3.8, and that of its first experiments
// (pkg/registry/constants.go).
const (
	layerMediaType    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	oldLayerMediaType = "application/tar+gzip"
)

// registryRepository is a registry below whose path charts are, each a repository of the registry.
type registryRepository struct {
	url      string
	insecure bool
	keys     map[string][]byte
	options  Options
}

// errChartName is about a name that leads to another repository of the registry than one below the URL.
var errChartName = errors.New("the name of the chart is not one of a chart of a registry")

// connectToRegistry returns the registry's repository of a chart, for as many bytes as its limits allow, and elements
// of lists where it is only asked for lists. The caller releases its answers.
func (r *registryRepository) connectToRegistry(ctx context.Context, chart string, lists *budget.Elements) (*oci.Registry, []remote.Option, func(), error) {
	if slices.ContainsFunc(strings.Split(chart, "/"), func(part string) bool { return part == "" || part == "." || part == ".." }) {
		return nil, nil, nil, errChartName
	}
	registry, err := oci.Connect(r.url+"/"+chart, r.keys, r.insecure, r.options.Dialer)
	if err != nil {
		return nil, nil, nil, err
	}
	registry, release := registry.Count(ctx)
	bounded := &boundedTransport{lists: lists}
	bounded.bytes.Store(r.options.Limits.Index)
	bounded.requests.Store(maxRequests)
	options := registry.OptionsVia(func(inner http.RoundTripper) http.RoundTripper {
		bounded.inner = inner
		return bounded
	})
	return registry, append(options, remote.WithContext(ctx)), release, nil
}

// fetchLockedArchive implements repository. The registry has it by its digest.
func (r *registryRepository) fetchLockedArchive(ctx context.Context, locked v1alpha1.LockedChart) ([]byte, error) {
	registry, options, release, err := r.connectToRegistry(ctx, locked.Name, nil)
	if err != nil {
		return nil, err
	}
	defer release()
	return r.readLayer(ctx, registry, locked.Digest, options)
}

func (r *registryRepository) readLayer(ctx context.Context, registry *oci.Registry, digest string,
	options []remote.Option) ([]byte, error) {
	layer, err := remote.Layer(registry.Repository.Digest(digest), options...)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	lease := budget.Memory(ctx, registry.Repository.RegistryStr())
	defer lease.Release()
	content, err := budget.ReadAll(ctx, lease, body, r.options.Limits.Archive)
	if err != nil {
		return nil, oci.HideContent(err)
	}
	if int64(len(content)) > r.options.Limits.Archive {
		return nil, &tooLargeError{"the chart's archive", r.options.Limits.Archive}
	}
	return content, nil
}

// resolveVersionRange implements repository. Tags cannot have a plus sign, so that Helm puts _ in its place.
func (r *registryRepository) resolveVersionRange(ctx context.Context, name,
	versions string) (v1alpha1.LockedChart, error) {
	var chosen v1alpha1.LockedChart
	registry, options, release, err := r.connectToRegistry(ctx, name, &budget.Elements{Most: maxTags})
	if err != nil {
		return chosen, err
	}
	defer release()
	tags, err := remote.List(registry.Repository, options...)
	if err != nil {
		return chosen, asNotFound(err)
	}
	for i, tag := range tags {
		tags[i] = strings.ReplaceAll(tag, "_", "+")
	}
	if chosen.Version, err = chooseTag(tags, versions); err != nil {
		return chosen, err
	}
	image, err := remote.Image(registry.Repository.Tag(strings.ReplaceAll(chosen.Version, "+", "_")), options...)
	if err != nil {
		return chosen, asNotFound(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return chosen, err
	}
	if chosen.Digest, err = chartLayer(manifest); err != nil {
		return chosen, fmt.Errorf("%s: %w", chosen.Version, err)
	}
	return chosen, nil
}

// asNotFound maps a registry's not-found error to ErrNotFound.
func asNotFound(err error) error {
	var refused *transport.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// chartLayer returns the digest of the archive.
func chartLayer(manifest *v1.Manifest) (string, error) {
	for _, layer := range manifest.Layers {
		if layer.MediaType == layerMediaType || layer.MediaType == oldLayerMediaType {
			return layer.Digest.String(), nil
		}
	}
	return "", errors.New("it is an artifact without a chart")
}

// maxRequests is how many requests one look at a registry may need: pages of tags, tokens and redirects. maxTags is how
// many tags a repository may have: each is parsed as a version, which needs a hundred times as much memory.
const maxRequests, maxTags = 200, 100_000

// boundedTransport aborts a conversation that exceeds its limit of bytes or requests.
type boundedTransport struct {
	inner    http.RoundTripper
	bytes    atomic.Int64
	requests atomic.Int64
	lists    *budget.Elements // of all pages, which are read one after the other
}

// RoundTrip implements http.RoundTripper.
func (b *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.requests.Add(-1) < 0 {
		return nil, fmt.Errorf("the registry wants more than %d requests", maxRequests)
	}
	response, err := b.inner.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{response.Body, b}
	}
	return response, err
}

type boundedBody struct {
	io.ReadCloser
	of *boundedTransport
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.of.bytes.Add(-int64(n)) < 0 {
		return n, errors.New("the registry answers with more bytes than there is room for")
	}
	if b.of.lists != nil {
		if tooMany := b.of.lists.Add(p[:n]); tooMany != nil {
			return n, tooMany
		}
	}
	return n, err
}
