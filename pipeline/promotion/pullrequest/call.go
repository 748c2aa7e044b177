// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/process/trust"
)

// api calls the API of one repository at a host.
//
// The hosts' own Go clients are not used. Prerig calls five to ten endpoints of each host, and needs uniform
// behavior that the clients implement differently or not at all: which failures are temporary and for how long,
// redirects that neither turn a call into a different one nor send the credential elsewhere, limits on responses,
// and a context for each call. GitLab's client (v2.64.0) alone would add 5.8 MB to a stripped program.
type api struct {
	// root is the URL of the API, at that of the repository in it; server and repository are what people call them.
	root, at, server, repository string
	client                       *http.Client
	// authorize sets the credential of a request.
	authorize func(r *http.Request) error
	// marks is the key of marks in comments, which only who has the credential can make.
	marks  [sha256.Size]byte
	header http.Header
	// query is added to all calls, such as api-version=7.0.
	query string
	// isFor returns an error where the credentials are not for a URL; nil where they are for all that is below root.
	isFor func(ctx context.Context, url string) error
	now   func() time.Time
}

// permit allows redirects of calls within the host's API, as far as the credentials are for them: the server may have
// other applications, and the API other repositories.
func (a *api) permit(ctx context.Context, at *url.URL) error {
	below := at.Scheme + "://" + at.Host + at.EscapedPath()
	if !strings.HasPrefix(below, strings.TrimSuffix(a.root, "/")+"/") || path.Clean(at.Path) != strings.TrimSuffix(at.Path, "/") {
		return errElsewhere
	}
	if a.isFor != nil && a.isFor(ctx, below) != nil {
		return &egress.NotPermittedError{Host: at.Host}
	}
	return nil
}

const (
	// callTimeout bounds one call.
	callTimeout = time.Minute
	// maxAnswer bounds an answer: a hundred pull requests with bodies of 64 KiB fit twice.
	maxAnswer = 16 << 20
	// maxElements bounds the lists of an answer. A page of a list has a hundred elements, and the lists in them few.
	maxElements = 50_000
	// maxCause bounds what is quoted of an error about an answer, which may quote the answer.
	maxCause = 300
)

// errElsewhere is a redirection that is not followed.
var errElsewhere = errors.New("it sends elsewhere with a redirection; was the repository renamed or moved? Give its new URL")

// sameCall follows redirections within a server that repeat the call.
func sameCall(next *http.Request, before []*http.Request) error {
	first := before[0]
	if next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host || len(before) > 5 {
		return errElsewhere
	}
	return nil
}

// newClient returns a client that connects to what the dialer's rules allow.
func newClient(dialer *egress.Dialer, ca []byte) (*http.Client, error) {
	dialer = egress.OrDefault(dialer)
	var transport http.RoundTripper = dialer.Transport()
	if len(ca) > 0 {
		trusted, ok := trust.Authorities(ca)
		if !ok {
			return nil, fmt.Errorf("the secret's %s holds no PEM certificate", KeyCA)
		}
		// The dialer's own transport is shared by all, and trusts none of these.
		transport = dialer.Guard(&http.Transport{
			ForceAttemptHTTP2: true, IdleConnTimeout: 10 * time.Second, TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: trusted,
		})
	}
	return &http.Client{Transport: egress.PerRequest(transport), Timeout: callTimeout, CheckRedirect: sameCall}, nil
}

// call makes one call below the repository. in is sent as JSON where it is not nil, and the answer read into out where that is not.
func (a *api) call(ctx context.Context, doing, method, below string, in, out any) (http.Header, error) {
	return a.callAt(ctx, doing, method, a.at+below, in, out)
}

// callAt makes one call to a URL of the host.
func (a *api) callAt(ctx context.Context, doing, method, to string, in, out any) (http.Header, error) {
	left := int64(maxAnswer)
	return a.retryCall(ctx, doing, method, to, in, out, &left)
}

// errNotNamed is about a URL that an answer names and the credentials are not for.
var errNotNamed = errors.New("the answer names another repository, as of a fork, and the secret's key .hosts allows none of its URL")

// readNamed reads a URL that an answer names, under the rules for one that it redirects to.
func (a *api) readNamed(ctx context.Context, doing, to string, out any) error {
	at, err := url.Parse(to)
	if err != nil || a.permit(ctx, at) != nil {
		return &Error{Server: a.server, Repository: a.repository, Doing: doing, Err: errNotNamed}
	}
	_, err = a.callAt(ctx, doing, http.MethodGet, to, nil, out)
	return err
}

// Of calls that only read, which may be made again without harm.
const (
	// readTries is how often one is made, so that a host which refuses a part of its calls does not keep all that needs several of them
	// from being done.
	readTries = 4
	// readWait is the longest that a host may want to be left alone for that, and quick how long the call before may have taken.
	readWait, quick = 2 * time.Second, 5 * time.Second
)

// retryCall makes one call to a URL of the host, and again soon where it only reads and the failure may pass. The
// answer is taken from what is left for answers.
func (a *api) retryCall(ctx context.Context, doing, method, to string, in, out any, left *int64) (http.Header, error) {
	for try := 1; ; try++ {
		began := time.Now()
		header, err := a.callOnce(ctx, doing, method, to, in, out, left)
		wait, again := Retry(err)
		if err == nil || !again || method != http.MethodGet || try == readTries || wait > readWait || time.Since(began) > quick {
			return header, err
		}
		if backoff.Wait(ctx, max(wait, backoff.Delay(50*time.Millisecond, readWait, try))) != nil {
			return header, err
		}
	}
}

// callOnce makes one call.
func (a *api) callOnce(ctx context.Context, doing, method, to string, in, out any, left *int64) (http.Header, error) {
	e := &Error{Server: a.server, Repository: a.repository, Doing: doing}
	request, err := a.newHTTPRequest(ctx, method, to, in)
	if err != nil {
		if inner := (*Error)(nil); errors.As(err, &inner) {
			return nil, err // of the call that gets a token
		}
		e.Err = err
		return nil, e
	}
	response, err := a.client.Do(request.WithContext(egress.WithPermit(ctx, a.permit)))
	if err != nil {
		e.Err = withoutURL(err)
		e.Temporary = mayPass(ctx, err)
		return nil, e
	}
	defer response.Body.Close()
	e.Status = response.StatusCode
	lease := budget.Memory(ctx, a.server)
	defer lease.Release()
	body, err := budget.ReadAll(ctx, lease, response.Body, maxAnswer)
	switch {
	case err != nil:
		e.Err, e.Temporary = fmt.Errorf("reading the answer: %w", err), mayPass(ctx, err)
		return nil, e
	case len(body) > maxAnswer:
		e.Err = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
		return nil, e
	case response.StatusCode/100 != 2 || response.StatusCode == http.StatusNonAuthoritativeInfo:
		a.fillRefusalDetails(e, response.Header, withoutCredentials(request, rejectionMessage(body)))
		return nil, e
	case out == nil:
		return response.Header, nil
	}
	if *left -= int64(len(body)); *left < 0 {
		e.Err = fmt.Errorf("the pages of the list have more than %d MiB together", maxListed>>20)
		return nil, e
	}
	if e.Err = budget.CheckElements(body, maxElements); e.Err != nil {
		return nil, e
	}
	if err := json.Unmarshal(body, out); err != nil {
		describeUnreadableAnswer(e, request, body, err)
		return nil, e
	}
	return response.Header, nil
}

func (a *api) newHTTPRequest(ctx context.Context, method, to string, in any) (*http.Request, error) {
	if a.query != "" {
		mark := "?"
		if strings.Contains(to, "?") {
			mark = "&"
		}
		to += mark + a.query
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, errors.New("the URL of the API cannot be used")
	}
	for key, values := range a.header {
		request.Header[key] = values
	}
	request.Header.Set("User-Agent", "prerig")
	if request.Header.Get("Accept") == "" {
		request.Header.Set("Accept", "application/json")
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.authorize == nil {
		return request, nil
	}
	return request, a.authorize(request)
}

// describeUnreadableAnswer describes what is wrong with an answer that should be JSON.
func describeUnreadableAnswer(e *Error, request *http.Request, body []byte, err error) {
	var syntax *json.SyntaxError
	text := bytes.TrimSpace(body)
	switch {
	case len(text) > 0 && text[0] == '<':
		e.Err = errors.New("the answer is a web page; is the URL that of the host's API?")
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(text)):
		e.Err, e.Temporary = errors.New("the answer ends in its middle"), true
	default:
		e.Err = errors.New("the answer is none that is known: " + foreign.Text(withoutCredentials(request, err.Error()), maxCause))
	}
}

// withoutURL removes the URL from a client's error: Repository and Doing are more specific.
func withoutURL(err error) error {
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// mayPass reports whether a call that got no answer may get one later.
func mayPass(ctx context.Context, err error) bool {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var verification *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil, errors.Is(err, errElsewhere), egress.IsRefused(err):
		return false
	case errors.As(err, &authority), errors.As(err, &name), errors.As(err, &verification):
		return false
	}
	return true
}
