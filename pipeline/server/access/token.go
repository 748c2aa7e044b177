// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Token is an entry of a file of tokens. The token itself is not in it, so that who reads the file cannot use it.
type Token struct {
	// Name identifies the actor in the log.
	Name       string   `json:"name"`
	Role       Role     `json:"role"`
	Namespaces []string `json:"namespaces,omitempty"`
	// SHA256 is the hash of the token, in hexadecimal. A fast hash without salt is sufficient here, as it would not
	// be for a password: a token is 256 random bits, which cannot be brute-forced, however fast the hash.
	SHA256 string `json:"sha256"`
	// Expires is when the token ends; zero is never.
	Expires time.Time `json:"expires,omitzero"`
}

// tokenPrefix begins every token, so that scanners for secrets know one.
const tokenPrefix = "prerig_"

// tokenBytes is how many random bytes a token is made of.
const tokenBytes = 32

// NewToken creates a token. secret is what its owner gets; the entry belongs in a file of tokens, and the secret
// cannot be derived from it.
func NewToken(name string, grant Grant, expires time.Time) (secret string, entry Token, err error) {
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return "", Token{}, fmt.Errorf("making a token: %w", err)
	}
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(secret))
	entry = Token{Name: name, Role: grant.Role, Namespaces: grant.Namespaces, SHA256: hex.EncodeToString(hash[:]), Expires: expires}
	if err := entry.validateToken(); err != nil {
		return "", Token{}, fmt.Errorf("making a token: %w", err)
	}
	return secret, entry, nil
}

var tokenName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

func (t Token) validateToken() error {
	if !tokenName.MatchString(t.Name) {
		return fmt.Errorf("name: must be of up to 63 letters, digits and . _ @ -, found %q", t.Name)
	}
	if _, err := t.decodeHash(); err != nil {
		return err
	}
	return t.toGrant().Check()
}

func (t Token) toGrant() Grant { return Grant{Role: t.Role, Namespaces: t.Namespaces} }

func (t Token) decodeHash() (hash [sha256.Size]byte, err error) {
	decoded, err := hex.DecodeString(t.SHA256)
	if err != nil || len(decoded) != len(hash) {
		// It is not quoted: the value may be the token itself.
		return hash, errors.New("sha256: must be the hash that prerig daemon token create prints, of 64 hexadecimal digits")
	}
	copy(hash[:], decoded)
	return hash, nil
}

// maxTokenFile bounds a file of tokens, in bytes.
const maxTokenFile = 1 << 20

// parseTokens reads a file of tokens, a list in YAML. Errors name lines, never what could be a token.
func parseTokens(file string, text []byte) ([]Token, error) {
	docs, err := strict.ReadAll(text, maxTokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading tokens of %s: %w", file, err)
	}
	var out []Token
	var errs []error
	for _, doc := range docs {
		var list []Token
		ps := strict.Problems{List: doc.Duplicates(nil)}
		strict.Decoder{Optional: true}.Decode(nil, doc.Value, &list, &ps)
		for i, token := range list {
			if err := token.validateToken(); err != nil {
				ps.Add([]any{i}, "%v", err)
			}
		}
		ps.Locate(doc)
		for _, problem := range ps.List {
			errs = append(errs, fmt.Errorf("reading tokens of %s: %s", file, problem))
		}
		out = append(out, list...)
	}
	return out, errors.Join(errs...)
}

// CheckTokens returns what is wrong with the text of a file of tokens.
func CheckTokens(file string, text []byte) error {
	_, err := parseTokens(file, text)
	return err
}
