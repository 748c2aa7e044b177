// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Limits bound what is asked of one repository for one chart.
type Limits struct {
	// Archive is the size of a chart's archive in bytes, Index that of a repository's index or of all answers of a
	// registry.
	Archive, Index int64
	// Timeout is for everything together.
	Timeout time.Duration
	// Cache is the size in bytes of all archives that are kept.
	Cache int64
}

// DefaultLimits are some ten times what large charts and repositories have.
func DefaultLimits() Limits {
	return Limits{Archive: 16 << 20, Index: 64 << 20, Timeout: time.Minute, Cache: 512 << 20}
}

// Options of a Fetcher.
type Options struct {
	// StateDir keeps the archives, in its directory charts.
	StateDir string
	// Secrets reads secrets; nil means that none exist.
	Secrets secret.Reader
	// Dialer connects to servers; nil means a dialer with the default rules.
	Dialer *egress.Dialer
	// Sources are the URLs that archives of any pipeline may be at beside those below the repositories that pipelines
	// name; nil sets no bound.
	Sources []giturl.Pattern
	// Limits; their zero value means the defaults.
	Limits Limits
}

// Fetcher brings charts. It is safe for concurrent use. The indexes of repositories, which Choose and Resolve read, it
// reads once: it is to live no longer than one command where these are called.
type Fetcher struct {
	options Options
	cache   archiveCache
	indexes source.Once[*indexFile]
}

// New returns a Fetcher.
func New(o Options) *Fetcher {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	o.Dialer = egress.OrDefault(o.Dialer)
	return &Fetcher{options: o, cache: archiveCache{dir: filepath.Join(o.StateDir, "charts"), size: o.Limits.Cache}}
}

// DigestError is about an archive that is not the one that is locked. Trying again does not help.
type DigestError struct {
	// Chart is what is locked.
	Chart v1alpha1.LockedChart
}

// Error names the locked digest but not the actual one: the author of the lock could use that one to read the
// archive.
func (e *DigestError) Error() string {
	return fmt.Sprintf("its archive does not have the digest %s that is locked: the repository now serves other content", e.Chart.Digest)
}

// Archive returns the archive of a locked chart, which has the digest that is locked. The repository is the pipeline's,
// with the URL that the chart is asked for at.
func (f *Fetcher) Archive(ctx context.Context, namespace string, from v1alpha1.ChartRepository,
	locked v1alpha1.LockedChart) ([]byte, error) {
	ctx = f.withReach(ctx, namespace)
	key := cacheKey(namespace, from, locked.Digest)
	if content, ok := f.cache.getVerifiedArchive(key, locked.Digest); ok {
		return content, nil
	}
	ctx, cancel := f.withFetchTimeout(ctx)
	defer cancel()
	r, err := f.openRepository(ctx, namespace, from)
	if err != nil {
		return nil, err
	}
	content, err := r.fetchLockedArchive(ctx, locked)
	if err != nil {
		return nil, explainTimeout(ctx, fmt.Errorf("fetching the chart %s: %w", locked, err))
	}
	if DigestOf(content) != locked.Digest {
		return nil, fmt.Errorf("fetching the chart %s: %w", locked, &DigestError{locked})
	}
	f.cache.storeArchive(key, content)
	return content, nil
}

// File returns a file at or below the URL of a repository. It has the digest that is locked; without one, it is as the
// server has it now.
func (f *Fetcher) File(ctx context.Context, namespace string, from v1alpha1.ChartRepository,
	locked v1alpha1.LockedFile) ([]byte, error) {
	ctx = f.withReach(ctx, namespace)
	key := cacheKey(namespace, from, locked.Digest)
	if content, ok := f.cache.getVerifiedArchive(key, locked.Digest); ok {
		return content, nil
	}
	ctx, cancel := f.withFetchTimeout(ctx)
	defer cancel()
	keys, err := secret.Read(ctx, f.options.Secrets, namespace, from.SecretRef, secret.At(from.URL))
	if err != nil {
		return nil, err
	}
	r, err := newHTTPRepository(from.URL, keys, f.options)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(locked.URL)
	if err != nil {
		return nil, errors.New("its URL cannot be read") // the cause quotes it
	}
	content, err := r.readBoundedURL(ctx, at, f.options.Limits.Archive)
	if err != nil {
		return nil, explainTimeout(ctx, err)
	}
	if locked.Digest != "" && DigestOf(content) != locked.Digest {
		return nil, &FileDigestError{locked}
	}
	if locked.Digest != "" {
		f.cache.storeArchive(key, content)
	}
	return content, nil
}

// FileDigestError is about a file that is not the one that is locked. Trying again does not help.
type FileDigestError struct {
	// File is what is locked.
	File v1alpha1.LockedFile
}

// Error names the locked digest only, as DigestError does.
func (e *FileDigestError) Error() string {
	return fmt.Sprintf("it does not have the digest %s that is locked: the server now serves other content; review it and run prerig lock", e.File.Digest)
}

// withReach has requests charged to a team, and bound to what the daemon allows.
func (f *Fetcher) withReach(ctx context.Context, namespace string) context.Context {
	return egress.WithReach(budget.WithTeam(ctx, namespace),
		egress.Reach{Allowed: f.options.Sources, Whose: "pipelines of this daemon", Setting: "egress.sources"})
}

// Choose returns the newest version of a chart in a range, as Helm chooses it, with the digest that the repository
// lists, which may be empty. An exact version is used as is. The error is ErrNotFound if no version matches.
func (f *Fetcher) Choose(ctx context.Context, namespace string, from v1alpha1.ChartRepository, name,
	versions string) (v1alpha1.LockedChart, error) {
	ctx, cancel := f.withFetchTimeout(ctx)
	defer cancel()
	r, err := f.openRepository(ctx, namespace, from)
	if err != nil {
		return v1alpha1.LockedChart{}, err
	}
	chosen, err := r.resolveVersionRange(ctx, name, versions)
	if err != nil {
		return chosen, explainTimeout(ctx, fmt.Errorf("looking for the chart %s in %s: %w", strings.TrimSpace(name+" "+versions), from.URL, err))
	}
	chosen.Name, chosen.Repository, chosen.Range = name, from.URL, versions
	return chosen, nil
}

// Resolve is Choose with the digest of the archive that the repository serves, and the archive. It returns an error
// if that digest is not the one that the repository lists.
func (f *Fetcher) Resolve(ctx context.Context, namespace string, from v1alpha1.ChartRepository, name,
	versions string) (v1alpha1.LockedChart, []byte, error) {
	chosen, err := f.Choose(ctx, namespace, from, name, versions)
	if err != nil {
		return chosen, nil, err
	}
	ctx, cancel := f.withFetchTimeout(ctx)
	defer cancel()
	r, err := f.openRepository(ctx, namespace, from)
	if err != nil {
		return chosen, nil, err
	}
	content, err := r.fetchLockedArchive(ctx, chosen)
	if err != nil {
		return chosen, nil, explainTimeout(ctx, fmt.Errorf("fetching the chart %s: %w", chosen, err))
	}
	found := DigestOf(content)
	if chosen.Digest != "" && chosen.Digest != found {
		return chosen, nil, fmt.Errorf("fetching the chart %s: its archive has the digest %s, and the repository's index has %s", chosen, found, chosen.Digest)
	}
	chosen.Digest = found
	return chosen, content, nil
}

// ErrNotFound is the cause of errors about charts and versions that a repository does not have.
var ErrNotFound = errors.New("the repository does not have it")

// repository is a chart repository of either kind.
type repository interface {
	// resolveVersionRange returns the version that a range resolves to, the digest that the repository lists, and the
	// location of the archive.
	resolveVersionRange(ctx context.Context, name, versions string) (v1alpha1.LockedChart, error)
	// fetchLockedArchive returns what is at the place of a chart.
	fetchLockedArchive(ctx context.Context, locked v1alpha1.LockedChart) ([]byte, error)
}

// openRepository returns a repository with its credentials. It sends no request.
func (f *Fetcher) openRepository(ctx context.Context, namespace string,
	from v1alpha1.ChartRepository) (repository, error) {
	purpose := secret.At(from.URL)
	registry := strings.HasPrefix(from.URL, "oci://")
	if registry {
		purpose = secret.AtRegistry(from.URL, from.Insecure)
	}
	keys, err := secret.Read(ctx, f.options.Secrets, namespace, from.SecretRef, purpose)
	if err != nil {
		return nil, err
	}
	if registry {
		return &registryRepository{url: strings.TrimRight(from.URL, "/"), insecure: from.Insecure, keys: keys,
			options: f.options}, nil
	}
	r, err := newHTTPRepository(from.URL, keys, f.options)
	if err != nil {
		return nil, err
	}
	r.isFor = func(ctx context.Context, url string) error {
		_, err := secret.Read(ctx, f.options.Secrets, namespace, from.SecretRef, secret.At(url))
		return err
	}
	r.index = func(ctx context.Context) (*indexFile, error) {
		return f.indexes.Get(cacheKey(namespace, from, from.URL), func() (*indexFile, error) { return r.readIndex(ctx) })
	}
	return r, nil
}

func (f *Fetcher) withFetchTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.options.Limits.Timeout, errTimeout{f.options.Limits.Timeout})
}

// errTimeout describes what a deadline was for.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string {
	return fmt.Sprintf("the server did not give it within %s", e.after)
}

// explainTimeout puts the reason for the end of a context in the place of a bare deadline.
func explainTimeout(ctx context.Context, err error) error {
	if cause, ok := context.Cause(ctx).(errTimeout); ok { //nolint:errorlint // it is the very cause that was set
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// DigestOf returns the digest of a content as locks have it.
func DigestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// cacheKey returns the name of an archive in the cache. Users without access to a private repository must not find
// its charts in the cache.
func cacheKey(namespace string, from v1alpha1.ChartRepository, digest string) string {
	text := digest
	if from.SecretRef != nil {
		text = strings.Join([]string{namespace, from.SecretRef.Name, v1alpha1.NormalChartRepository(from.URL), digest},
			"\n")
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// IsPermanent reports whether an error of a Fetcher will be the same the next time, unless the lock or the pipeline
// changes.
func IsPermanent(err error) bool {
	var digest *DigestError
	var file *FileDigestError
	var large *tooLargeError
	return errors.As(err, &digest) || errors.As(err, &file) || errors.As(err, &large) || errors.Is(err, errNotListed) ||
		errors.Is(err, errChartName) || egress.IsRefused(err)
}
