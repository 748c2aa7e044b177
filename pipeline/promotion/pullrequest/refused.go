// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// secondaryWait is how long GitHub wants to be left alone after its secondary limit, if it does not specify it
// (docs.github.com, "Rate limits for the REST API").
const secondaryWait = time.Minute

// LongestWait bounds what a host can ask for.
const LongestWait = 2 * time.Hour

// fillRefusalDetails fills in the details of an unsuccessful answer.
func (a *api) fillRefusalDetails(e *Error, h http.Header, message string) {
	e.Message = message
	if runes := []rune(message); len(runes) > maxMessage {
		e.Message = string(runes[:maxMessage-1]) + "…"
	}
	if e.Status == http.StatusNonAuthoritativeInfo {
		// Azure DevOps answers 203 and a page to sign in at, where the token is wrong.
		e.Status, e.Message = http.StatusUnauthorized, "the host answers with a page to sign in at"
	}
	e.Wait = a.requestedBackoff(h)
	low := strings.ToLower(e.Message)
	limited := strings.Contains(low, "secondary rate limit") || strings.Contains(low, "abuse detection") || strings.Contains(low, "rate limit exceeded")
	switch {
	case e.Status == http.StatusForbidden && (limited || e.Wait > 0):
		e.Temporary = true
		if e.Wait == 0 {
			e.Wait = secondaryWait
		}
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooEarly:
		e.Temporary = true
	case e.Status >= 500:
		e.Temporary = e.Status != http.StatusNotImplemented && e.Status != http.StatusHTTPVersionNotSupported
	default:
		e.Wait = 0
	}
}

// requestedBackoff returns how long a host wants to be left alone.
func (a *api) requestedBackoff(h http.Header) time.Duration {
	var wait time.Duration
	if after := h.Get("Retry-After"); after != "" {
		if seconds, err := strconv.ParseFloat(after, 64); err == nil && seconds > 0 {
			wait = time.Duration(min(seconds, LongestWait.Seconds()) * float64(time.Second))
		} else if at, err := http.ParseTime(after); err == nil {
			wait = at.Sub(a.now())
		}
	}
	for _, name := range []string{"X-RateLimit-", "RateLimit-"} {
		// GitHub and GitLab: the limit is exhausted until a time, in seconds since 1970.
		reset, err := strconv.ParseInt(h.Get(name+"Reset"), 10, 64)
		if wait <= 0 && err == nil && h.Get(name+"Remaining") == "0" {
			// One more second, as the host's clock has a resolution of seconds.
			wait = time.Unix(reset+1, 0).Sub(a.now())
		}
	}
	return max(0, min(wait, LongestWait))
}

// maxMessage bounds what is shown of an answer, and maxRefusal the bytes of one that is decoded for that.
const maxMessage, maxRefusal = 400, 64 << 10

// messageKeys are the keys of error messages of hosts, the most readable first.
var messageKeys = []string{"message", "error_description", "error", "detail", "errors", "exceptionName", "code"}

// rejectionMessage returns the host's message about a rejection, on one line.
func rejectionMessage(body []byte) string {
	var answer any
	if len(body) > maxRefusal || json.Unmarshal(body, &answer) != nil {
		return "" // a page of a proxy
	}
	var parts []string
	collectAnswerTexts(answer, "", 0, &parts)
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.Join(parts, "; "))
	return strings.Join(strings.Fields(text), " ")
}

// collectAnswerTexts collects the texts of an answer: GitLab has lists by field, GitHub a resource, field and code,
// Bitbucket lists of errors.
func collectAnswerTexts(v any, under string, depth int, parts *[]string) {
	if depth > 4 || len(*parts) >= 8 {
		return
	}
	switch v := v.(type) {
	case string:
		if v != "" && !slices.Contains(*parts, v) {
			if under != "" {
				v = under + " " + v
			}
			*parts = append(*parts, v)
		}
	case []any:
		for _, one := range v {
			collectAnswerTexts(one, under, depth+1, parts)
		}
	case map[string]any:
		known := false
		for _, key := range messageKeys {
			if inner, ok := v[key]; ok && (key != "code" || !known) {
				known = true
				field, _ := v["field"].(string)
				collectAnswerTexts(inner, field, depth+1, parts)
			}
		}
		if known || depth == 0 {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collectAnswerTexts(v[key], key, depth+1, parts)
		}
	}
}

// withoutCredentials removes what a request proves its sender with from an answer to it: a token of a GitHub App is in
// no other place.
func withoutCredentials(request *http.Request, text string) string {
	_, sent, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	_, password, _ := request.BasicAuth()
	for _, secret := range []string{sent, password} {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
