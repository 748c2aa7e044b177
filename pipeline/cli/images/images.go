// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package images asks registries which digests the tags of images name, and whether they still do. It reads
// manifests only: it pulls no layer, pushes no image, and changes no manifest and no lock file by itself.
package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio/feature"
)

// Options control how registries are queried. The zero value works.
type Options struct {
	// Platforms that every image has to be for, such as linux/amd64 or linux/arm64/v8. Empty asks for none.
	Platforms []string
	// Keychain finds the credentials of a registry; nil uses those of docker login, podman login and their helpers.
	Keychain authn.Keychain
	// Transport makes the requests; nil uses the library's, which honours HTTP_PROXY and the like.
	Transport http.RoundTripper
	// Jobs is how many images are asked for at once; 0 means 8.
	Jobs int
	// Timeout of one request with its answer; 0 means 20 seconds.
	Timeout time.Duration
	// Retry controls how often and how long a request is retried.
	Retry Retry
	// UserAgent is sent to registries; empty means prerig.
	UserAgent string
	// Verify lists the images that have to be signed; Pin verifies them.
	Verify []v1alpha1.ImageVerification
	// Unused, which may be nil, hears of the patterns in Verify that no image has matched.
	Unused func(pattern string)
	// Progress is called at the start and after each image, one call at a time; nil for none.
	Progress func(Progress)
}

// Retry is how requests are tried again that failed for a reason that may pass: a lost connection, a timeout, too many
// requests, or an error of the server.
type Retry struct {
	// Attempts in all; 0 means 6.
	Attempts int
	// First is the wait after the first failure, doubled after each; 0 means 500 milliseconds. Waits are spread at
	// random between half and the whole, so that clients do not come back together. A Retry-After of the registry
	// counts instead.
	First time.Duration
	// Max is the longest wait; 0 means 15 seconds.
	Max time.Duration
}

// Progress is the progress of a run.
type Progress struct {
	// Done of Total images.
	Done, Total int
	// Image that was done last; empty at the start.
	Image string
	// Err is what went wrong with it.
	Err error
}

func (o Options) withDefaults() Options {
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Transport == nil {
		o.Transport = remote.DefaultTransport
	}
	if o.Jobs <= 0 {
		o.Jobs = 8
	}
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	if o.Retry.Attempts <= 0 {
		o.Retry.Attempts = 6
	}
	if o.Retry.First <= 0 {
		o.Retry.First = 500 * time.Millisecond
	}
	if o.Retry.Max <= 0 {
		o.Retry.Max = 15 * time.Second
	}
	if o.UserAgent == "" {
		o.UserAgent = "prerig"
	}
	return o
}

// registryClient asks registries. Its puller shares logins among the images of a repository.
type registryClient struct {
	options Options
	puller  *remote.Puller
	remote  []remote.Option
	rules   *signatureRules
}

func newClient(o Options) (*registryClient, error) {
	o = o.withDefaults()
	rules, err := newSignatureRules(o.Verify)
	if err != nil {
		return nil, err
	}
	how := []remote.Option{
		remote.WithAuthFromKeychain(o.Keychain),
		remote.WithTransport(&retryTransport{inner: o.Transport, timeout: o.Timeout, retry: o.Retry}),
		remote.WithUserAgent(o.UserAgent),
		remote.WithJobs(o.Jobs),
		// The library's own retries do not end with the context; ours do.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
	}
	puller, err := remote.NewPuller(how...)
	if err != nil {
		return nil, fmt.Errorf("preparing to query registries: %w", err)
	}
	return &registryClient{options: o, puller: puller, remote: how, rules: rules}, nil
}

// forEachImage calls do for every image on a bounded number of goroutines, and reports progress. The images must be
// sorted and without duplicates; errors are joined in the same order.
func (c *registryClient) forEachImage(ctx context.Context, images []string, do func(ctx context.Context, image string) error) error {
	var mu sync.Mutex
	errs := make([]error, len(images))
	next := make(chan int)
	done := 0
	if c.options.Progress != nil {
		c.options.Progress(Progress{Total: len(images)})
	}
	var group sync.WaitGroup
	for range min(c.options.Jobs, len(images)) {
		group.Go(func() {
			for i := range next {
				err := do(ctx, images[i])
				mu.Lock()
				errs[i] = err
				done++
				if c.options.Progress != nil {
					c.options.Progress(Progress{Done: done, Total: len(images), Image: images[i], Err: err})
				}
				mu.Unlock()
			}
		})
	}
feed:
	for i := range images {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("querying registries: %w", context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// sortUnique returns each image once, sorted.
func sortUnique(images []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, image := range images {
		if image != "" && !seen[image] {
			seen[image] = true
			out = append(out, image)
		}
	}
	sort.Strings(out)
	return out
}

// Pinned reports whether an image is named by a digest already.
func Pinned(image string) bool { return strings.Contains(image, "@") }

func parseTag(image string) (name.Reference, error) {
	ref, err := name.ParseReference(image)
	if problem := feature.ImageProblem(image); err != nil && problem != "" {
		return nil, fmt.Errorf("reading the image: its name %q %s", image, problem)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the image %q: %w", image, err)
	}
	return ref, nil
}

// explainRegistryError adds what a user can do about an answer of a registry.
func explainRegistryError(ref name.Reference, err error) error {
	host := ref.Context().RegistryStr()
	if terr := transportError(err); terr != nil {
		switch terr.StatusCode {
		case http.StatusUnauthorized:
			return fmt.Errorf("%s needs a login; run docker login %s: %w", host, host, err)
		case http.StatusForbidden:
			return fmt.Errorf("%s denies access to %s; log in as a user who may read it: %w", host,
				ref.Context().RepositoryStr(), err)
		case http.StatusNotFound:
			return fmt.Errorf("%s has no %s: %w", host, ref.Identifier(), err)
		case http.StatusTooManyRequests:
			return fmt.Errorf("%s limits the rate of requests; log in, or try later: %w", host, err)
		}
	}
	return err
}

func transportError(err error) *transport.Error {
	var terr *transport.Error
	if errors.As(err, &terr) {
		return terr
	}
	return nil
}

func notFound(err error) bool {
	terr := transportError(err)
	return terr != nil && terr.StatusCode == http.StatusNotFound
}

func platformText(p *v1.Platform) string {
	if p == nil {
		return ""
	}
	text := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		text += "/" + p.Variant
	}
	return text
}
