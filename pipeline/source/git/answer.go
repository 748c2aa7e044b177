// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// answerChecker hands on what a Git server answers over http, and nothing else. What stands in the body of a refusal is not handed
// on: whoever writes a pipeline could read with it what the daemon can reach and they cannot.
type answerChecker struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a *answerChecker) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusBadRequest:
		return withBody(response, nil), nil
	case response.StatusCode != http.StatusOK || request.Method != http.MethodGet:
		return response, nil
	}
	// What is got is the list of references alone.
	list, err := readAdvertised(response.Body, request.URL.Query().Get("service"))
	if errors.Is(err, errNotGit) {
		err = notGitError(response.Header.Get("Content-Type"))
	}
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return withBody(response, list), nil
}

// withBody returns a response with another body, and is done with the one that it has.
func withBody(response *http.Response, body []byte) *http.Response {
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10) // so that the connection can be used again
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response
}

// notGitError says what was answered, by its media type.
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
