// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// answerChecker passes on answers of Git servers over http, and no others. The body of an error response is not
// passed on: otherwise the author of a pipeline could read what the daemon can reach and they cannot.
type answerChecker struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a *answerChecker) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusBadRequest:
		return withBody(response, nil), nil
	case request.Method == http.MethodPost:
		response.Body = readCloser{boundedByContext(request.Context(), response.Body), response.Body}
		return response, nil
	case response.StatusCode != http.StatusOK || request.Method != http.MethodGet:
		return response, nil
	}
	// What is got is the list of references alone.
	lease := budget.Memory(request.Context(), request.URL.Host)
	list, err := readAdvertised(request.Context(), lease, response.Body, request.URL.Query().Get("service"))
	if errors.Is(err, errNotGit) {
		err = notGitError(response.Header.Get("Content-Type"))
	}
	if err != nil {
		lease.Release()
		response.Body.Close()
		return nil, err
	}
	response = withBody(response, list)
	response.Body = leasedBody{response.Body, lease}
	return response, nil
}

// leasedBody holds a lease until it is closed, which go-git does when it has read the list.
type leasedBody struct {
	io.ReadCloser
	lease *budget.Lease
}

// Close implements io.Closer.
func (b leasedBody) Close() error {
	b.lease.Release()
	return b.ReadCloser.Close()
}

// maxHead bounds what go-git holds in memory of an answer: the lines before a pack, of which a fetch of one commit
// receives a few, and the report on a push with messages of hooks. A hostile server would send them for as long as
// memory lasts.
const maxHead = 4 << 20

// What is over the limit then.
const (
	sizeOfHead   = "size of the server's messages before the objects in bytes"
	sizeOfReport = "size of the server's report on a push in bytes"
)

type readCloser struct {
	io.Reader
	io.Closer
}

// answerBound bounds one answer, until it is lifted. A context leads it to where the answer comes in.
type answerBound struct {
	answer *limitedReader // nil until then
	what   string
	lifted bool
}

type answerBoundKey struct{}

// boundAnswer returns a context to ask a server in, and the bound of its answer.
func boundAnswer(ctx context.Context, what string) (context.Context, *answerBound) {
	bound := &answerBound{what: what}
	return context.WithValue(ctx, answerBoundKey{}, bound), bound
}

// boundedByContext returns an answer within the bound of the context that it was asked for in.
func boundedByContext(ctx context.Context, answer io.Reader) io.Reader {
	bound, ok := ctx.Value(answerBoundKey{}).(*answerBound)
	if !ok {
		return answer
	}
	bound.answer = newLimitedReader(answer, bound.what, maxHead)
	return bound
}

// Read implements io.Reader.
func (b *answerBound) Read(p []byte) (int, error) {
	if b.lifted {
		return b.answer.r.Read(p)
	}
	return b.answer.Read(p)
}

// explainExceededBound returns the error about an answer that exceeded the bound, which go-git does not always report,
// and other errors unchanged.
func (b *answerBound) explainExceededBound(err error) error {
	if err != nil && b.answer != nil && b.answer.left <= 0 {
		return &tree.LimitError{What: b.what, Limit: maxHead}
	}
	return err
}

// withBody returns a response with another body, and is done with the one that it has.
func withBody(response *http.Response, body []byte) *http.Response {
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10) // so that the connection can be used again
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response
}

// notGitError describes the answer by its media type.
func notGitError(contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return errNotGit
	case kind == "text/html" || kind == "application/xhtml+xml":
		return errors.New("the server answers with a web page, such as one to sign in, and not as a Git server: check the URL, and whether credentials are needed")
	case strings.HasPrefix(kind, "application/x-git-"):
		return errNotGit
	}
	return fmt.Errorf("%w: it is %s", errNotGit, kind)
}
