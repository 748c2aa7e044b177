// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// errorTexts are the codes with which registries refuse, and what each means (OCI distribution specification 1.1, and
// those that the distribution registry adds).
var errorTexts = map[transport.ErrorCode]string{
	transport.BlobUnknownErrorCode:         "the registry does not have the blob",
	transport.BlobUploadInvalidErrorCode:   "the upload of a blob is not valid",
	transport.BlobUploadUnknownErrorCode:   "the registry does not know the upload of a blob",
	transport.DigestInvalidErrorCode:       "the digest is not that of the content",
	transport.ManifestBlobUnknownErrorCode: "the manifest names a blob that the registry does not have",
	transport.ManifestInvalidErrorCode:     "the manifest is not valid",
	transport.ManifestUnknownErrorCode:     "the registry does not have the manifest",
	transport.ManifestUnverifiedErrorCode:  "the manifest is not signed as the registry wants it",
	transport.NameInvalidErrorCode:         "the name of the repository is not valid",
	transport.NameUnknownErrorCode:         "the registry does not have the repository",
	transport.SizeInvalidErrorCode:         "the length is not that of the content",
	transport.TagInvalidErrorCode:          "the tag is not that of the manifest",
	transport.UnauthorizedErrorCode:        "the registry asks for credentials, or does not accept those it got",
	transport.DeniedErrorCode:              "the registry does not allow it",
	transport.UnsupportedErrorCode:         "the registry does not support it",
	transport.TooManyRequestsErrorCode:     "the registry takes no more requests now",
	transport.UnavailableErrorCode:         "the registry is not available now",
	transport.UnknownErrorCode:             "the registry does not say why",
}

// maxAnswer bounds manifests and lists of tags, in bytes: registries take no larger manifests (OCI distribution
// specification 1.1).
const maxAnswer = 4 << 20

// maxLayers bounds the layers of a manifest, the manifests of an index, and the other lists in one.
const maxLayers = 10_000

// boundedAnswer fails where an answer is larger than it may be, or a manifest would be when it is decoded.
type boundedAnswer struct {
	io.ReadCloser
	left     int64
	elements *budget.Elements // nil for a list of tags, which are decoded to little more
}

// Read implements io.Reader.
func (b *boundedAnswer) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// Whether it ends here is worth a byte.
		if n, err := b.ReadCloser.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("the registry sends a manifest or a list of tags of more than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.elements != nil {
		if tooMany := b.elements.Add(p[:n]); tooMany != nil {
			return 0, tooMany
		}
	}
	return n, err
}

// boundAnswer bounds an answer that is read whole, wherever the registry has redirected the request for it. What reads
// blobs has bounds of its own.
func boundAnswer(request *http.Request, body io.ReadCloser) io.ReadCloser {
	asked := firstRequest(request).URL.Path
	if strings.Contains(asked, "/blobs/") {
		return body
	}
	bounded := &boundedAnswer{ReadCloser: body, left: maxAnswer}
	if !strings.HasSuffix(asked, "/tags/list") {
		bounded.elements = &budget.Elements{Most: maxLayers}
	}
	return bounded
}

// firstRequest returns the request that was redirected to a request, which is that one where it was not redirected.
func firstRequest(request *http.Request) *http.Request {
	for request.Response != nil && request.Response.Request != nil {
		request = request.Response.Request
	}
	return request
}

// maxRefusal bounds what is read of a refusal, in bytes, and maxCodes how many of its codes are reported.
const maxRefusal, maxCodes = 64 << 10, 3

// answerChecker passes on the answers of a registry. Of an error response it passes on only the codes that the
// specification lists, and of a token response only the token: with the rest, the author of a pipeline could read
// what the daemon can reach and they cannot.
type answerChecker struct {
	next       http.RoundTripper
	repository name.Repository
	// insecure allows plain http.
	insecure bool
}

// maxRedirects is how often a request may be redirected, as in net/http. The library's own rule for redirects has no
// such bound, so without it a registry that redirects to itself occupies a processor until the step's time is over.
const maxRedirects = 10

// RoundTrip implements http.RoundTripper.
func (a *answerChecker) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := a.check(request); err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	if request.Response != nil && request.Header.Get("Authorization") != "" && !a.isOwn(request) {
		// What adds the credentials does so by the host alone, and for redirects, too.
		request = request.Clone(request.Context())
		request.Header.Del("Authorization")
	}
	response, err := a.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	refused := response.StatusCode >= http.StatusBadRequest
	if !refused && !a.asksForToken(request) {
		response.Body = boundAnswer(request, response.Body)
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	switch {
	case refused && err != nil:
		body = nil
	case refused:
		body = codesOf(body)
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusOK:
		if body, err = tokenOf(body); err != nil {
			return nil, err
		}
	default:
		body = nil
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}

// check returns an error for a request that is not sent.
func (a *answerChecker) check(request *http.Request) error {
	if a.isTooPlain(request) {
		return fmt.Errorf("%s would be asked over plain http; if that is meant, set insecure: true", request.URL.Host)
	}
	redirects := 0
	for at := request; at.Response != nil && at.Response.Request != nil; at = at.Response.Request {
		if redirects++; redirects > maxRedirects {
			return fmt.Errorf("the registry redirects more than %d times", maxRedirects)
		}
	}
	return nil
}

// isTooPlain reports whether a request would use plain http without permission. The library contacts registries on
// private addresses and on this machine that way, with credentials, if https does not answer. A store that the
// registry redirects to may use it to be read: it receives no credentials, and its content is compared with the
// digest. What is published is never sent so.
func (a *answerChecker) isTooPlain(request *http.Request) bool {
	if a.insecure || request.URL.Scheme != "http" {
		return false
	}
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead
	return !reads || strings.EqualFold(request.URL.Host, a.repository.RegistryStr()) ||
		request.Header.Get("Authorization") != ""
}

// asksForToken reports whether a request is not for the repository's own API, nor for what that has redirected to. The
// address of the token service is one that the registry has named.
func (a *answerChecker) asksForToken(request *http.Request) bool {
	request = firstRequest(request)
	if request.Method != http.MethodGet && request.Method != http.MethodPost {
		return false
	}
	return !a.isOwn(request)
}

// isOwn reports whether a request is for the repository's own API.
func (a *answerChecker) isOwn(request *http.Request) bool {
	at := request.URL
	if at.Host != a.repository.RegistryStr() {
		return false
	}
	below := strings.HasPrefix(at.Path, "/v2/"+a.repository.RepositoryStr()+"/")
	return at.Path == "/v2/" || below && path.Clean(at.Path) == strings.TrimSuffix(at.Path, "/")
}

// tokenOf returns only the token from the answer of a token service.
func tokenOf(body []byte) ([]byte, error) {
	var token struct {
		Token        string `json:"token,omitempty"`
		AccessToken  string `json:"access_token,omitempty"`
		RefreshToken string `json:"refresh_token,omitempty"`
		ExpiresIn    int    `json:"expires_in,omitempty"`
	}
	if json.Unmarshal(body, &token) != nil || token.Token == "" && token.AccessToken == "" {
		return nil, errors.New("the token service that the registry names returns no token")
	}
	return json.Marshal(token)
}

// errOtherContent is about content that is not what the registry calls it.
var errOtherContent = errors.New("the content is not what the registry calls it")

// HideContent replaces an error that describes content which has another digest or format than expected. A registry
// may redirect to a server that the daemon can reach and the author of a pipeline cannot, whose content the digest
// and the length would reveal. The texts are those of go-containerregistry 0.22 and encoding/json.
func HideContent(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, part := range []string{"error verifying", "does not match requested digest", "does not match expected size", "invalid character", "cannot unmarshal"} {
		if strings.Contains(text, part) {
			return errOtherContent
		}
	}
	return err
}

// codesOf returns an error response with its known codes and our messages, or nil if it has no known code.
func codesOf(body []byte) []byte {
	var said, known struct {
		Errors []transport.Diagnostic `json:"errors"`
	}
	if json.Unmarshal(body, &said) != nil {
		return nil
	}
	for _, d := range said.Errors {
		if text, ok := errorTexts[d.Code]; ok && len(known.Errors) < maxCodes {
			known.Errors = append(known.Errors, transport.Diagnostic{Code: d.Code, Message: text})
		}
	}
	if len(known.Errors) == 0 {
		return nil
	}
	out, err := json.Marshal(known)
	if err != nil {
		panic(err) // it is plain data
	}
	return out
}
