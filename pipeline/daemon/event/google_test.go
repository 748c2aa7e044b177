// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A token is of Google, for this receiver, of the service account, and of now.
func TestTokensThatAreRefused(t *testing.T) {
	keys, others := NewTestKeys(), NewTestKeys()
	good := keys.Token(now, nil)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"one"}`))
	r := Receiver{Name: "r", Provider: ArtifactRegistry, Token: keys.Verifier()}
	body := []byte(deliveries["artifact registry"].body)
	for name, token := range map[string]string{
		"another issuer":             keys.Token(now, map[string]any{"iss": "https://accounts.example.com"}),
		"another audience":           keys.Token(now, map[string]any{"aud": "https://elsewhere.example/hook"}),
		"another service account":    keys.Token(now, map[string]any{"email": "evil@project.iam.gserviceaccount.com"}),
		"an address that is not":     keys.Token(now, map[string]any{"email_verified": false}),
		"no address":                 keys.Token(now, map[string]any{"email": nil, "email_verified": nil}),
		"expired":                    keys.Token(now.Add(-2*time.Hour), nil),
		"not yet":                    keys.Token(now, map[string]any{"nbf": now.Add(time.Hour).Unix()}),
		"another key":                others.Token(now, nil),
		"a key that is not known":    others.Token(now, map[string]any{"kid": "two"}),
		"no signature":               none + "." + parts[1] + ".",
		"the signature of another":   parts[0] + "." + strings.Split(keys.Token(now, map[string]any{"email": "x@y"}), ".")[1] + "." + parts[2],
		"no token":                   "",
		"something that is no token": "abc",
	} {
		h := http.Header{"Authorization": {"Bearer " + token}}
		if err := r.CheckHeaders(h, "", now); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: before the body is read: %v", name, err)
		}
		if _, err := r.Read(h, "", body, now); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := r.Read(http.Header{"Authorization": {"Bearer " + good}}, "", body, now); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if _, err := r.Read(http.Header{"Authorization": {"Bearer " + keys.Token(now, map[string]any{"iss": "accounts.google.com"})}}, "", body, now); err != nil {
		t.Errorf("the issuer without a scheme, as Google has it too: %v", err)
	}
}

// Whoever sends tokens with keys that nobody knows has the keys fetched only now and then.
func TestUnknownKeysAreFetchedRarely(t *testing.T) {
	keys := NewTestKeys()
	v := keys.Verifier()
	for range 100 {
		if err := v.verifyBearerToken(http.Header{"Authorization": {"Bearer " + keys.Token(now, map[string]any{"kid": "unknown"})}}, now); !errors.Is(err, ErrSignature) {
			t.Fatal(err)
		}
	}
	if n := keys.Fetches.Load(); n < 1 || n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
	if err := v.verifyBearerToken(http.Header{"Authorization": {"Bearer " + keys.Token(now, nil)}}, now); err != nil {
		t.Errorf("a good token between them: %v", err)
	}
}
