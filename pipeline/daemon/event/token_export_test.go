// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// What the tokens of tests are for, and by whom.
const (
	TestAudience = "https://prerig.example/hook/artifact-registry"
	TestEmail    = "pubsub@project.iam.gserviceaccount.com"
)

// TestKeys is a key of Google's, and how often it was asked for.
type TestKeys struct {
	key     *rsa.PrivateKey
	Fetches atomic.Int64
}

// NewTestKeys makes a key.
func NewTestKeys() *TestKeys {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return &TestKeys{key: key}
}

// RoundTrip implements http.RoundTripper: it answers as Google does.
func (k *TestKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	k.Fetches.Add(1)
	encode := base64.RawURLEncoding.EncodeToString
	body := fmt.Sprintf(`{"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": %q, "e": %q}]}`,
		encode(k.key.N.Bytes()), encode(big.NewInt(int64(k.key.E)).Bytes()))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Cache-Control": {"max-age=3600"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Verifier returns what takes tokens that are signed with the key.
func (k *TestKeys) Verifier() *TokenVerifier {
	v, err := NewTokenVerifier(TestAudience, TestEmail, "", k)
	if err != nil {
		panic(err)
	}
	return v
}

// Token returns a token as Pub/Sub sends it, with some of its claims changed.
func (k *TestKeys) Token(now time.Time, changed map[string]any) string {
	claims := map[string]any{"iss": "https://accounts.google.com", "aud": TestAudience, "email": TestEmail, "email_verified": true, "sub": "113774264463038321964",
		"azp": "113774264463038321964", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	kid := "one"
	for name, value := range changed {
		if name == "kid" {
			kid = value.(string)
			continue
		}
		claims[name] = value
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","kid":"`+kid+`","typ":"JWT"}`)) + "." + encode(text)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signed + "." + encode(signature)
}
