// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestEachRedirectIsPermittedOrNotSent counts what a server gets: its own redirects are asked about one by one.
func TestEachRedirectIsPermittedOrNotSent(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if next, ok := map[string]string{"/a": "/b", "/b": "/c"}[r.URL.Path]; ok {
			http.Redirect(w, r, next, http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	refused := errors.New("it may not be asked")
	client := &http.Client{Transport: PerRequest(NewDialer(Rules{}).Transport())}
	for name, c := range map[string]struct{ not, want string }{"all": {"", "/a /b /c"}, "the first": {"/b", "/a"}, "the second": {"/c", "/a /b"}, "what the pipeline names": {"/a", "/a /b /c"}} {
		asked = nil
		ctx := WithPermit(t.Context(), func(_ context.Context, at *url.URL) error {
			if at.Path == c.not {
				return refused
			}
			return nil
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/a", strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		if got := strings.Join(asked, " "); got != c.want || errors.Is(err, refused) != (c.want != "/a /b /c") {
			t.Errorf("%s: asked %s, error %v", name, got, err)
		}
	}
}

// TestAnswersThatAreReadWholeAreBounded: their headers as well.
func TestAnswersThatAreReadWholeAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer s.Close()
	for most, want := range map[int64]bool{999: false, 1000: true, 1001: true} {
		client := &http.Client{Transport: BoundAnswers(NewDialer(Rules{}).Transport(), most)}
		response, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		if (err == nil) != want || int64(len(content)) > most {
			t.Errorf("of at most %d bytes: %d were read, error %v", most, len(content), err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan int, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		n := 0
		for ; n < 64<<20; n += 10_000 {
			if _, err := io.WriteString(conn, "X: "+strings.Repeat("x", 10_000)+"\r\n"); err != nil {
				break
			}
		}
		sent <- n
	}()
	if response, err := (&http.Client{Transport: NewDialer(Rules{}).Transport()}).Get("http://" + l.Addr().String()); err == nil {
		response.Body.Close()
		t.Error("an answer with a header without an end was read")
	}
	if n := <-sent; n > 32<<20 { // what is on its way counts, too
		t.Errorf("%d bytes of a header were sent", n)
	}
}
