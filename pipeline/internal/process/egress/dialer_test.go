// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers each question for an address with the next of some, the last one for ever.
func nameServer(t *testing.T, addresses ...[4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for asked, packet := 0, make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response = true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET},
					Body: &dnsmessage.AResource{A: addresses[min(asked, len(addresses)-1)]}}}
				asked++
			}
			answer, err := m.Pack()
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name that is harmless when it is looked at, and leads inside when it is used, leads nowhere: what is checked is the address that
// is connected to.
func TestNameThatChangesLeadsNowhere(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	port := inside.Listener.Addr().(*net.TCPAddr).Port
	rules, err := NewRules([]string{"127.0.0.1"}, []string{"private"})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDialer(rules)
	d.dialer.Resolver = nameServer(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2}, [4]byte{169, 254, 169, 254})
	client := &http.Client{Transport: d.Transport()}
	target := (&url.URL{Scheme: "http", Host: net.JoinHostPort("git.example.com", strconv.Itoa(port)), Path: "/"}).String()
	if resp, err := client.Get(target); err != nil {
		t.Fatalf("an address that is allowed: %v", err)
	} else {
		resp.Body.Close()
	}
	client.CloseIdleConnections()
	for _, kind := range []string{"a private", "a link-local"} {
		resp, err := client.Get(target)
		if err == nil {
			resp.Body.Close()
			t.Fatalf("%s address was connected to", kind)
		}
		if !IsRefused(err) || !strings.Contains(err.Error(), "git.example.com leads to "+kind+" address") || strings.Contains(err.Error(), "169.254") || strings.Contains(err.Error(), "127.0.0.2") {
			t.Errorf("got %v", err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}

// proxyChild is the variable that has the test's process do what a child with proxies in its environment does.
const proxyChild = "PRERIG_TEST_PROXY_TARGETS"

// A proxy of the environment may be anywhere, as who runs the daemon has chosen it; addresses in URLs are refused before it is asked.
func TestProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv(proxyChild) != "" {
		rules, err := NewRules(nil, []string{"private"})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: NewDialer(rules).Transport()}
		for _, target := range strings.Fields(os.Getenv(proxyChild)) {
			resp, err := client.Get(target)
			if err != nil {
				t.Logf("RESULT %s refused=%v", target, IsRefused(err))
				continue
			}
			resp.Body.Close()
			t.Logf("RESULT %s status=%d", target, resp.StatusCode)
		}
		return
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer proxy.Close()
	child := exec.Command(os.Args[0], "-test.run=^TestProxyOfTheEnvironment$", "-test.v")
	child.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=direct.localhost", "no_proxy=direct.localhost",
		proxyChild+"=http://git.example.com/ http://169.254.169.254/ http://10.0.0.1/ http://direct.localhost:1/")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"RESULT http://git.example.com/ status=418", "RESULT http://169.254.169.254/ refused=true", "RESULT http://10.0.0.1/ refused=true",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "RESULT http://direct.localhost:1/ status") {
		t.Errorf("what goes around the proxy was not checked:\n%s", out)
	}
}
