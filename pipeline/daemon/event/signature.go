// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // one sender signs with it
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrSignature is wrapped by every failed verification. The sender learns no more than this.
var ErrSignature = errors.New("the signature is missing or wrong")

// errMismatch is the cause of a rejection that depends on the body: the signature is well-formed, but does not
// match.
var errMismatch = fmt.Errorf("%w: it does not match the body", ErrSignature)

// verifyFunc checks a delivery against a receiver's secret.
type verifyFunc func(h http.Header, body, secret []byte, now time.Time) error

// hmacHex expects "ALGORITHM=HEX" in the header, or bare HEX of SHA-256 where bare is set. SHA-1 is refused.
func hmacHex(header string, bare bool) verifyFunc {
	return func(h http.Header, body, secret []byte, _ time.Time) error {
		value := h.Get(header)
		if value == "" {
			return fmt.Errorf("%w: there is no header %s", ErrSignature, header)
		}
		algorithm, digits, ok := strings.Cut(value, "=")
		if !ok {
			if !bare {
				return fmt.Errorf("%w: %s has no algorithm", ErrSignature, header)
			}
			algorithm, digits = "sha256", value
		}
		var sum func() hash.Hash
		switch algorithm {
		case "sha256":
			sum = sha256.New
		case "sha384":
			sum = sha512.New384
		case "sha512":
			sum = sha512.New
		default:
			return fmt.Errorf("%w: %s uses %q, which is not accepted", ErrSignature, header, algorithm)
		}
		got, err := hex.DecodeString(digits)
		if err != nil {
			return fmt.Errorf("%w: %s is not hexadecimal", ErrSignature, header)
		}
		mac := hmac.New(sum, secret)
		mac.Write(body)
		if !hmac.Equal(got, mac.Sum(nil)) {
			return fmt.Errorf("%s: %w", header, errMismatch)
		}
		return nil
	}
}

// hmacSHA1 expects bare HEX of HMAC-SHA1, for a sender without a stronger scheme. The known attacks on SHA-1 are
// collisions, which do not help against an HMAC (as RFC 6151 states for weaker hashes).
func hmacSHA1(header string) verifyFunc {
	return func(h http.Header, body, secret []byte, _ time.Time) error {
		digits := h.Get(header)
		got, err := hex.DecodeString(digits)
		if err != nil || len(digits) != 2*sha1.Size {
			return fmt.Errorf("%w: %s is missing or no HMAC-SHA1", ErrSignature, header)
		}
		mac := hmac.New(sha1.New, secret)
		mac.Write(body)
		if !hmac.Equal(got, mac.Sum(nil)) {
			return fmt.Errorf("%s: %w", header, errMismatch)
		}
		return nil
	}
}

// secretEqual compares in a time that reveals no information about the secret, not even its length. It returns 1 if
// they are equal, otherwise 0.
func secretEqual(value string, secret []byte) int {
	got, want := sha256.Sum256([]byte(value)), sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(got[:], want[:])
}

// plainToken expects the secret itself in the header, perhaps after one of the prefixes.
func plainToken(header string, prefixes ...string) verifyFunc {
	return func(h http.Header, _, secret []byte, _ time.Time) error {
		value := h.Get(header)
		found := secretEqual(value, secret)
		for _, p := range prefixes {
			if len(value) > len(p) && strings.EqualFold(value[:len(p)], p) {
				found |= secretEqual(value[len(p):], secret)
			}
		}
		if found != 1 {
			return fmt.Errorf("%w: %s does not hold the token", ErrSignature, header)
		}
		return nil
	}
}

// standardWebhookAge is how old, or how far in the future, a signed timestamp may be: the Standard Webhooks
// specification leaves it to the receiver and its libraries take five minutes.
const standardWebhookAge = 5 * time.Minute

// standardWebhook is the scheme of the Standard Webhooks specification, which GitLab's signing tokens use: base64 of
// HMAC-SHA256 over "ID.TIMESTAMP.BODY", several signatures separated by spaces.
func standardWebhook(h http.Header, body, secret []byte, now time.Time) error {
	id, stamp, signatures := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature")
	if id == "" || stamp == "" || signatures == "" {
		return fmt.Errorf("%w: Webhook-Id, Webhook-Timestamp and Webhook-Signature are needed", ErrSignature)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: Webhook-Timestamp is not a number", ErrSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > standardWebhookAge || age < -standardWebhookAge {
		return fmt.Errorf("%w: Webhook-Timestamp is more than %s from now", ErrSignature, standardWebhookAge)
	}
	mac := hmac.New(sha256.New, standardKey(secret))
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for _, s := range strings.Fields(signatures) {
		text, ok := strings.CutPrefix(s, "v1,")
		if !ok {
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(text); err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return fmt.Errorf("Webhook-Signature: %w", errMismatch)
}

// standardKey decodes a secret that is written as whsec_<base64>; any other secret is the key as it is.
func standardKey(secret []byte) []byte {
	text, ok := strings.CutPrefix(string(secret), "whsec_")
	if !ok {
		return secret
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return secret
	}
	return key
}

// verifyGitLab accepts the signed scheme if its headers are present, otherwise the plain token.
func verifyGitLab(h http.Header, body, secret []byte, now time.Time) error {
	if h.Get("Webhook-Signature") != "" {
		return standardWebhook(h, body, secret, now)
	}
	return plainToken("X-Gitlab-Token")(h, body, secret, now)
}

// firstHeader uses the verification of the first header present, or of the last one if none is.
func firstHeader(headers ...string) verifyFunc {
	return func(h http.Header, body, secret []byte, now time.Time) error {
		chosen := headers[len(headers)-1]
		for _, name := range headers {
			if h.Get(name) != "" {
				chosen = name
				break
			}
		}
		return hmacHex(chosen, true)(h, body, secret, now)
	}
}
