// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// answering is a transport that gives every request one answer.
type answering struct {
	status     int
	retryAfter string
	body       []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Retry-After": {a.retryAfter}, "Link": {a.retryAfter}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// Whatever a host answers, there is a pull request or an error that is short and shows no credential.
func FuzzAnswers(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("there are no recorded answers")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(200), "", data)
		f.Add(uint16(200), "", []byte("["+string(data)+"]"))
		f.Add(uint16(200), "", []byte(`{"values":[`+string(data)+`],"nextPageStart":0,"value":[`+string(data)+`]}`))
		f.Add(uint16(409), "12", data)
	}
	f.Add(uint16(403), "Wed, 21 Oct 2026 07:28:00 GMT", []byte(`{"message":"s3cret-token","errors":[{"field":"s3cret-token","code":"s3cret-token"}]}`))
	f.Add(uint16(429), "NaN", []byte(`{"message":{"s3cret-token":["x"]}}`))
	f.Add(uint16(503), `<x>; rel="next"`, []byte(`null`))
	f.Fuzz(func(t *testing.T, status uint16, header string, body []byte) {
		answer := answering{int(status), header, body}
		if status < 200 || status > 599 || status/100 == 3 {
			answer.status = 200
		}
		for provider, open := range openers {
			a := &api{
				root: "https://h.example/api", at: "https://h.example/api/projects/P/repos/r", server: "h.example", repository: "P/r",
				client: &http.Client{Transport: answer}, now: time.Now,
			}
			h := open(a, Credentials{Token: "s3cret-token"})
			r, err := h.Find(context.Background(), "prerig/shop", "main")
			checkAnswer(t, provider, err)
			if err == nil && r != nil && (r.Head != "prerig/shop" || r.Base != "main") {
				t.Errorf("%s: found %+v", provider, r)
			}
			_, err = h.Create(context.Background(), "prerig/shop", "main", Content{Title: "t", Labels: []string{"l"}})
			checkAnswer(t, provider, err)
			_, err = h.Update(context.Background(), 2, Content{Title: "t", Labels: []string{"l"}})
			checkAnswer(t, provider, err)
			checkAnswer(t, provider, h.Close(context.Background(), 2, "c"))
		}
	})
}

func checkAnswer(t *testing.T, provider string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); strings.Contains(text, "s3cret-token") || len(text) > 4096 || strings.ContainsAny(text, "\n\x00\x1b") {
		t.Errorf("%s: the error is %q", provider, text)
	}
	if wait, ok := Retry(err); wait < 0 || wait > LongestWait || wait > 0 && !ok {
		t.Errorf("%s: again in %s, %t", provider, wait, ok)
	}
}
