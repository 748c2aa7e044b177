// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestSendersCannotKeepHealthBusy has one sender open connections without an end: those above its bound are closed, others are answered
// meanwhile, and so is the sender once it has closed them.
func TestSendersCannotKeepHealthBusy(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	health := fixture(t).Health()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, BySender(inner), nil, health, slog.New(slog.DiscardHandler)) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	address := inner.Addr().String()
	// All of 127.0.0.0/8 is this machine, so that it can be several senders.
	asks := func(from string) error {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		response, err := client.Get("http://" + address + "/healthz")
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	var kept []net.Conn
	for range maxProbes {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		kept = append(kept, c)
	}
	more, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if n, err := io.Copy(io.Discard, more); n > 0 {
		t.Errorf("a connection above the bound is answered: %d bytes, %v", n, err)
	}
	if err := asks("127.0.0.2"); err != nil {
		t.Errorf("another sender is not answered: %v", err)
	}
	for _, c := range kept {
		c.Close()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err = asks("127.0.0.1"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sender is not answered after it has closed its connections: %v", err)
		}
	}
}
