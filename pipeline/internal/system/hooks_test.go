// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// dialed sends bytes to the address for webhooks and gives the status of the first answer, 0 where the connection was
// closed without one.
func (f *fixture) dialed(parts ...string) (status int) {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.hooks)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for _, part := range parts {
			if _, err := io.WriteString(conn, part); err != nil {
				return
			}
		}
	}()
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		f.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			f.t.Error("the daemon holds the connection for two minutes")
		}
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestBodiesOfWebhooks sends what senders that are broken or hostile send, as it is on the wire.
func TestBodiesOfWebhooks(t *testing.T) {
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL")})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	body := func(size int, id string) string {
		head := fmt.Sprintf(`{"git":{"urls":[%q],"ref":"refs/heads/main"},"id":%q,"padding":"`, f.repository.URL, id)
		if size == 0 {
			return head + `"}`
		}
		return head + strings.Repeat("x", size-len(head)-2) + `"}`
	}
	head := func(text, length string) string {
		mac := hmac.New(sha256.New, []byte(hookKey))
		mac.Write([]byte(text))
		return "POST /hook/git HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Signature: sha256=" + hex.EncodeToString(mac.Sum(nil)) + "\r\n" + length + "\r\n\r\n"
	}
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d", n) }
	const chunked = "Transfer-Encoding: chunked"
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text) }
	largest, larger, small := body(event.MaxBody, "a"), body(event.MaxBody+1, "b"), body(0, "c")
	for name, tc := range map[string]struct {
		parts []string
		want  []int
	}{
		"as large as may be":                  {[]string{head(largest, length(len(largest))), largest}, []int{http.StatusAccepted}},
		"one byte more":                       {[]string{head(larger, length(len(larger))), larger}, []int{http.StatusRequestEntityTooLarge, 0}},
		"in chunks":                           {[]string{head(small, chunked), chunk(small)}, []int{http.StatusAccepted}},
		"in chunks, one byte more":            {[]string{head(larger, chunked), chunk(larger)}, []int{http.StatusRequestEntityTooLarge, 0}},
		"chunks without an end":               {[]string{head(larger, chunked), strings.Repeat("400\r\n"+strings.Repeat("x", 0x400)+"\r\n", 5000)}, []int{http.StatusRequestEntityTooLarge, 0}},
		"a length that is less than there is": {[]string{head(small, length(len(small)-5)), small}, []int{http.StatusUnauthorized}},
		"two lengths":                         {[]string{head(small, length(len(small))+"\r\n"+length(3)), small}, []int{http.StatusBadRequest}},
		"a negative length":                   {[]string{head(small, "Content-Length: -1"), small}, []int{http.StatusBadRequest}},
		"too many headers":                    {[]string{"POST /hook/git HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X-A: "+strings.Repeat("y", 1000)+"\r\n", 400) + "\r\n"}, []int{http.StatusRequestHeaderFieldsTooLarge, 0}},
		"another method":                      {[]string{"DELETE /hook/git HTTP/1.1\r\nHost: h\r\n\r\n"}, []int{http.StatusMethodNotAllowed}},
		"no body":                             {[]string{head("", length(0))}, []int{http.StatusBadRequest}},
	} {
		t.Run(name, func(t *testing.T) {
			f.t = t
			got, ok := f.dialed(tc.parts...), false
			for _, want := range tc.want {
				ok = ok || got == want
			}
			if !ok {
				t.Errorf("answered with %d, want %v", got, tc.want)
			}
		})
	}
	f.t = t
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
}

// TestSlowSenders expects the daemon to cut off senders that stop in the middle of a request: after 10 s in the headers and after 3 s
// in the body. Others are served meanwhile.
func TestSlowSenders(t *testing.T) {
	if !full() {
		t.Skip("it takes half a minute: PRERIG_E2E=full runs it")
	}
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL")})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	begin := time.Now()
	done := make(chan time.Duration, 40)
	for i := range cap(done) {
		part := "POST /hook/git HTTP/1.1\r\nHost: h\r\nX-Slow: "
		if i%2 == 1 {
			part = fmt.Sprintf("POST /hook/git HTTP/1.1\r\nHost: h\r\nX-Signature: sha256=%064d\r\nContent-Length: 100\r\n\r\n{", 0)
		}
		go func() {
			f.dialed(part)
			done <- time.Since(begin)
		}()
	}
	time.Sleep(time.Second)
	if status := f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")})); status != http.StatusAccepted {
		t.Errorf("another sender was answered with %d", status)
	}
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	for range cap(done) {
		if took := <-done; took < 2*time.Second || took > time.Minute {
			t.Errorf("a sender was cut off after %s", took)
		}
	}
}
