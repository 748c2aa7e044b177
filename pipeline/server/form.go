// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
)

// formKey makes the tokens of forms. Each is bound to the credential of who was given the form, so that no page of another site can
// know one, nor send one that its author was given.
type formKey struct{ key [sha256.Size]byte }

func newFormKey() (*formKey, error) {
	k := &formKey{}
	if _, err := rand.Read(k.key[:]); err != nil {
		return nil, fmt.Errorf("making the key of forms: %w", err)
	}
	return k, nil
}

// token returns the token for forms of a credential, "" where there is no credential.
func (k *formKey) token(credential string) string {
	if credential == "" {
		return ""
	}
	sum := hmac.New(sha256.New, k.key[:])
	sum.Write([]byte(credential))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// fits reports whether a form has the token of a credential.
func (k *formKey) fits(credential, token string) bool {
	return credential != "" && hmac.Equal([]byte(token), []byte(k.token(credential)))
}

// formField is the name of the field with a form's token.
const formField = "csrf"

// formOf returns the token for forms that are shown to who asks, "" for those who get none.
func (s *Server) formOf(r *http.Request) string { return s.forms.token(requestOf(r).credential) }

// isOwnForm reports whether a form that is sent was given to who sends it.
func (s *Server) isOwnForm(r *http.Request) bool {
	return s.forms.fits(requestOf(r).credential, r.PostFormValue(formField))
}

// fromBrowser reports whether a request says that a browser sends it.
func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}
