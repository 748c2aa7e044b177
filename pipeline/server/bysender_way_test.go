// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestManySlowConnectionsMakeWay opens more connections than one sender may have, each with a byte of a request, and
// asks from the same address.
func TestManySlowConnectionsMakeWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = Serve(t.Context(), MakingWay(l), nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }), slog.New(slog.DiscardHandler))
	}()
	for range maxConnections + 200 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte("P")); err != nil {
			continue // it had to make way already
		}
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		response, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
}
