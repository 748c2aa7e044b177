// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// Keys of the secret of a chart repository over HTTP.
const (
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
)

// maxRedirects is how often an answer may lead elsewhere. Releases of Git hosts do so once.
const maxRedirects = 5

// httpRepository is a chart repository as Helm has them: index.yaml, and archives anywhere.
type httpRepository struct {
	base   *url.URL
	client *http.Client
	keys   map[string][]byte
	limits Limits
	// isFor returns an error where the credentials are not for a URL; nil where they are for all that is on the
	// repository's server.
	isFor func(ctx context.Context, url string) error
	// index returns index.yaml, which may have been read before.
	index func(context.Context) (*indexFile, error)
}

func newHTTPRepository(raw string, keys map[string][]byte, o Options) (*httpRepository, error) {
	base, err := url.Parse(strings.TrimRight(raw, "/") + "/")
	if err != nil || base.Host == "" {
		return nil, errors.New("reading the URL of the chart repository: it names no server") // the cause quotes it
	}
	transport, err := oci.NewTransport(keys[keyCA], o.Dialer)
	if err != nil {
		return nil, err
	}
	r := &httpRepository{base: base, keys: keys, limits: o.Limits}
	r.client = &http.Client{Transport: transport, CheckRedirect: r.checkRedirect}
	return r, nil
}

// checkRedirect bounds redirects, and follows none that drops encryption or leads to a URL that the pipeline may
// not read. Each URL on the way is requested with credentials only if these are for it.
func (r *httpRepository) checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("it leads elsewhere more than %d times", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return errors.New("it leads from https to " + request.URL.Scheme)
	}
	request.Header.Del("Authorization") // which net/http has copied
	return r.authorizeChartRequest(request)
}

// authorizeChartRequest checks that a URL may be asked for, and adds the credentials where they are for it.
func (r *httpRepository) authorizeChartRequest(request *http.Request) error {
	ctx, at := request.Context(), request.URL
	if r.isBelow(at) {
		r.addCredentials(request)
		return nil
	}
	if err := egress.CheckURL(ctx, at); err != nil {
		return err
	}
	if r.isOwn(at) && r.isFor != nil && r.isFor(ctx, at.String()) == nil {
		r.addCredentials(request)
	}
	return nil
}

func (r *httpRepository) addCredentials(request *http.Request) {
	if len(r.keys[keyPassword]) > 0 {
		request.SetBasicAuth(string(r.keys[keyUsername]), string(r.keys[keyPassword]))
	}
}

// openAuthorizedURL opens a URL. Credentials are sent only to the repository's own server, and only to the URLs they
// are for.
func (r *httpRepository) openAuthorizedURL(ctx context.Context, at *url.URL) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("its URL is not one")
	}
	if err := r.authorizeChartRequest(request); err != nil {
		return nil, fmt.Errorf("asking %s: %w", at.Host, err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		// What is around the cause quotes the URL, which can be one that a redirect made, with a signature in it.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("asking %s: %w", at.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s answers %d (%s) to %s", at.Host, response.StatusCode, http.StatusText(response.StatusCode), at.Path)
	}
	return response.Body, nil
}

// readBoundedURL returns what is at a URL, where it is no larger than a number of bytes.
func (r *httpRepository) readBoundedURL(ctx context.Context, at *url.URL, most int64) ([]byte, error) {
	body, err := r.openAuthorizedURL(ctx, at)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	lease := budget.Memory(ctx, at.Host)
	defer lease.Release()
	content, err := budget.ReadAll(ctx, lease, body, most)
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", at.Path, at.Host, err)
	}
	if int64(len(content)) > most {
		return nil, &tooLargeError{at.Path, most}
	}
	return content, nil
}

// tooLargeError is about an answer that is larger than it may be. Trying again does not help.
type tooLargeError struct {
	what string
	most int64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.what, e.most)
}

// isOwn reports whether a URL is on the repository's own server.
func (r *httpRepository) isOwn(at *url.URL) bool {
	return at.Scheme == r.base.Scheme && strings.EqualFold(at.Host, r.base.Host)
}

// isBelow reports whether a URL is below the repository's, by each way to read its path: one with dots or encoded
// separators is not.
func (r *httpRepository) isBelow(at *url.URL) bool {
	escaped := strings.ToLower(at.EscapedPath())
	for _, odd := range []string{"%2e", "%2f", "%5c", "%25", "\\", ";"} {
		if strings.Contains(escaped, odd) || strings.Contains(at.Path, odd) {
			return false
		}
	}
	return path.Clean(at.Path) == at.Path && at.User == nil && r.isOwn(at) && strings.HasPrefix(at.Path, r.base.Path)
}

func (r *httpRepository) indexURL() *url.URL { return r.base.JoinPath("index.yaml") }

// fetchLockedArchive implements repository.
func (r *httpRepository) fetchLockedArchive(ctx context.Context, locked v1alpha1.LockedChart) ([]byte, error) {
	at, err := url.Parse(locked.URL)
	if err != nil || at.Host == "" {
		return nil, errors.New("its url in the lock is not one; run prerig lock")
	}
	if at.User != nil || at.Fragment != "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errNotListed
	}
	// The lock is the source's, and what it names is asked for on behalf of the pipeline.
	if !r.isBelow(at) || at.RawQuery != "" {
		if err := r.checkListed(ctx, locked.URL); err != nil {
			return nil, err
		}
	}
	return r.readBoundedURL(ctx, at, r.limits.Archive)
}

// errNotListed is about a lock that leads to a place which the repository does not name.
var errNotListed = errors.New("the lock has an archive that is not below the repository's URL, " +
	"and the index of the repository does not name it; run prerig lock")

// checkListed refuses URLs that the repository's index does not have.
func (r *httpRepository) checkListed(ctx context.Context, archive string) error {
	body, err := r.openAuthorizedURL(ctx, r.indexURL())
	if err != nil {
		return err
	}
	defer body.Close()
	found, err := containsWord(io.LimitReader(body, r.limits.Index), archive)
	if err != nil {
		return fmt.Errorf("reading the index of %s: %w", r.base.Host, err)
	}
	if !found {
		return errNotListed
	}
	return nil
}

// containsWord reports whether a text has a word between spaces, quotes or the signs of a list. It keeps little of the
// text.
func containsWord(text io.Reader, word string) (bool, error) {
	isEdge := func(b byte) bool { return strings.IndexByte(" \t\r\n\"',[]", b) >= 0 }
	window := []byte{'\n'}
	chunk := make([]byte, 64<<10)
	for {
		n, err := text.Read(chunk)
		window = append(window, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			window = append(window, '\n')
		}
		for from := 0; ; {
			at := bytes.Index(window[from:], []byte(word))
			end := from + at + len(word)
			if at < 0 || end >= len(window) {
				break
			}
			if from+at > 0 && isEdge(window[from+at-1]) && isEdge(window[end]) {
				return true, nil
			}
			from += at + 1
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		window = append(window[:0], window[max(0, len(window)-len(word)-1):]...)
	}
}

// indexFile is what is read of index.yaml (IndexFile of pkg/repo/v1).
type indexFile struct {
	APIVersion string                    `json:"apiVersion"`
	Entries    map[string][]indexVersion `json:"entries"`
}

type indexVersion struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

// readIndex reads index.yaml.
func (r *httpRepository) readIndex(ctx context.Context) (*indexFile, error) {
	content, err := r.readBoundedURL(ctx, r.indexURL(), r.limits.Index)
	if err != nil {
		return nil, err
	}
	index := &indexFile{}
	if err := yaml.Unmarshal(content, index); err != nil || index.APIVersion == "" {
		return nil, errors.New("its index.yaml is not the index of a chart repository")
	}
	return index, nil
}

// resolveVersionRange implements repository.
func (r *httpRepository) resolveVersionRange(ctx context.Context, name, versions string) (v1alpha1.LockedChart, error) {
	var chosen v1alpha1.LockedChart
	index, err := r.index(ctx)
	if err != nil {
		return chosen, err
	}
	found, err := index.findVersionInRange(name, versions)
	if err != nil {
		return chosen, err
	}
	at, err := r.base.Parse(found.URLs[0])
	if err == nil && at.Scheme == "oci" {
		return chosen, fmt.Errorf("the index has the version %s in a registry; name oci://%s as the repository", found.Version, path.Join(at.Host, path.Dir(at.Path)))
	}
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return chosen, fmt.Errorf("the index names no URL of HTTP for the version %s", found.Version)
	}
	chosen.Version, chosen.URL = found.Version, at.String()
	if told := strings.TrimPrefix(found.Digest, "sha256:"); told != "" {
		chosen.Digest = "sha256:" + told
	}
	return chosen, nil
}

// findVersionInRange returns the entry of the version that a range means.
func (i *indexFile) findVersionInRange(name, versions string) (indexVersion, error) {
	var have []string
	byVersion := map[string]indexVersion{}
	for _, one := range i.Entries[name] {
		if _, twice := byVersion[one.Version]; one.Version == "" || len(one.URLs) == 0 || twice {
			continue
		}
		have, byVersion[one.Version] = append(have, one.Version), one
	}
	chosen, err := chooseVersion(have, versions)
	return byVersion[chosen], err
}
