// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// supportsAction reports whether the server can do what an action does: the API has its route.
func (s *Server) supportsAction(a action) bool {
	if a.Route == "" {
		return true
	}
	mux := s.api.Load()
	if mux == nil {
		return false
	}
	_, pattern := mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: a.Route}})
	return pattern == http.MethodPost+" "+a.Route
}

// postAPI posts to a route of the API as the sender of a request. The error is the API's.
func (s *Server) postAPI(r *http.Request, path string, body Request) (code int, err error) {
	mux := s.api.Load()
	if mux == nil {
		return http.StatusServiceUnavailable, errors.New("asking the API: there is none")
	}
	text, err := json.Marshal(body)
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking the API: %w", err)
	}
	asked, err := http.NewRequestWithContext(r.Context(), http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking the API: %w", err)
	}
	asked.RemoteAddr, asked.Host, asked.TLS = r.RemoteAddr, r.Host, r.TLS
	for _, name := range []string{"Sec-Fetch-Site", "Origin"} { // the origin of the form was already checked, and is checked again
		if value := r.Header.Get(name); value != "" {
			asked.Header.Set(name, value)
		}
	}
	answer := &answerBuffer{header: http.Header{}, code: http.StatusOK}
	mux.ServeHTTP(answer, asked)
	if answer.code >= 300 {
		var failed struct{ Error string }
		if json.Unmarshal(answer.body.Bytes(), &failed) != nil || failed.Error == "" {
			failed.Error = http.StatusText(answer.code)
		}
		return answer.code, errors.New(failed.Error)
	}
	return answer.code, nil
}

// answerBuffer buffers the response of a handler.
type answerBuffer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answerBuffer) Header() http.Header         { return a.header }
func (a *answerBuffer) WriteHeader(code int)        { a.code = code }
func (a *answerBuffer) Write(p []byte) (int, error) { return a.body.Write(p) }
