// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// installation gets tokens of an installation of a GitHub App (docs.github.com, "Authenticating as a GitHub App installation"), each for
// this one repository.
type installation struct {
	app App
	api api // without authorize

	mu      sync.Mutex
	token   string
	renewAt time.Time // by a clock that is never set
}

const (
	// renewBefore is how long before its end a token is not used any more.
	renewBefore = 5 * time.Minute
	// shortestUse and longestUse bound how long it is used, regardless of the clocks of the host and of this
	// machine: the host issues tokens for an hour.
	shortestUse, longestUse = time.Minute, time.Hour - renewBefore
)

// setInstallationToken sets the token of a request. It is asked for once for all that wait.
func (i *installation) setInstallationToken(r *http.Request) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.token == "" || !i.api.now().Before(i.renewAt) {
		if err := i.renewInstallationToken(r.Context()); err != nil {
			return err
		}
	}
	r.Header.Set("Authorization", "Bearer "+i.token)
	return nil
}

func (i *installation) renewInstallationToken(ctx context.Context) error {
	key, err := parseKey(i.app.Key)
	if err != nil {
		return err
	}
	signed, err := signToken(i.app.ID, key, i.api.now())
	if err != nil {
		return err
	}
	asApp := i.api
	asApp.authorize = authorizeWithHeader("Bearer " + signed)
	if i.app.Installation == 0 {
		var found struct {
			ID int64 `json:"id"`
		}
		if _, err := asApp.call(ctx, "finding the installation of the GitHub App", http.MethodGet, "/installation", nil, &found); err != nil {
			return err
		}
		i.app.Installation = found.ID
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	_, name, _ := strings.Cut(i.api.repository, "/")
	asked := i.api.now()
	to := fmt.Sprintf("%s/app/installations/%d/access_tokens", i.api.root, i.app.Installation)
	in := map[string]any{"repositories": []string{name}}
	if _, err := asApp.callAt(ctx, "getting a token of the GitHub App", http.MethodPost, to, in, &answer); err != nil {
		return err
	}
	if answer.Token == "" {
		return errors.New("the host gave no token to the GitHub App")
	}
	use := answer.ExpiresAt.Sub(asked) - renewBefore
	i.token, i.renewAt = answer.Token, asked.Add(min(max(use, shortestUse), longestUse))
	return nil
}

func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not in PEM form", KeyAppKey)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := key.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s is no RSA key", KeyAppKey)
}

// signToken returns a JSON Web Token for a few minutes, with which the App asks for those of its installations. It begins a minute ago,
// as GitHub's clock may be behind.
func signToken(id string, key *rsa.PrivateKey, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iss": id, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", errors.New("the key of the GitHub App cannot sign")
	}
	return text + "." + encode(signature), nil
}
