// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAStartThatFailsLeavesNoAddressOpen has the last of the addresses fail. After a full disk the daemon starts again by
// itself, in the same process: what an attempt leaves open would keep all further ones from ever listening.
func TestAStartThatFailsLeavesNoAddressOpen(t *testing.T) {
	f := prepare(t, nil)
	f.c.State = filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	for _, address := range []*string{&f.c.Listen, &f.c.Admin.Listen} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*address = l.Addr().String()
		l.Close()
	}
	err := serve(t.Context(), f.c, Options{Version: "test"})
	if err == nil || !strings.Contains(err.Error(), "--state") || !strings.Contains(err.Error(), "path has") {
		t.Fatalf("got %v, want that the path of the socket is too long", err)
	}
	for _, address := range []string{f.c.Listen, f.c.Admin.Listen} {
		var l net.Listener
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if l, err = net.Listen("tcp", address); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("%s is not free again: %v", address, err)
			continue
		}
		l.Close()
	}
}

func TestTheServersOfTheQueueAreToldWithoutCredentials(t *testing.T) {
	for given, want := range map[string]string{
		"nats://nats:4222": "nats://nats:4222", "nats://u:p@a:4222, tls://token@b:4222": "a:4222,b:4222", "bogus": "bogus", "nats://u:p@ss@a": "a",
	} {
		if got := servers(given); got != want {
			t.Errorf("of %s: got %s, want %s", given, got, want)
		}
	}
}
