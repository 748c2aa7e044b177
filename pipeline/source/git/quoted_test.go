// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// hostileWords is what a server puts where its words are quoted: it is long, changes lines and how text is shown.
var hostileWords = "\x1b]0;pwn\x07 \x1b[2J\u202e\u200b\r\nlevel=ERROR msg=\"forged\"\u2028" + strings.Repeat("w", 60000)

// checkQuoted fails where an error quotes more of a server's words than a line for people has.
func checkQuoted(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	text := err.Error()
	if len(text) > 1200 || strings.ContainsFunc(text, foreign.IsHidden) || strings.Count(text, "w") > 700 {
		t.Errorf("%s: %d bytes, %.400q", what, len(text), text)
	}
}

// TestWordsOfGitServersAreQuotedInPart has a server put its words in each place of Git's protocol from which errors
// quote them: ERR packets, lists of references, and the answers to fetches.
func TestWordsOfGitServersAreQuotedInPart(t *testing.T) {
	const hash = "1111111111111111111111111111111111111111"
	begin := packet("# service=SERVICE\n") + "0000"
	words := hostileWords
	for name, list := range map[string]string{
		"ERR packet":            begin + packet("ERR "+words),
		"ERR packet at once":    packet("ERR " + words),
		"name of a reference":   begin + packet(hash+" refs/heads/"+words+"\x00ofs-delta\n") + "0000",
		"capability":            begin + packet(hash+" HEAD\x00"+words+"\n") + "0000",
		"no reference":          begin + packet(words) + "0000",
		"service":               packet("# service="+words) + "0000",
		"shallow":               begin + packet(hash+" HEAD\x00\n") + packet("shallow "+words) + "0000",
		"ERR after references":  begin + packet(hash+" refs/heads/main\x00ofs-delta shallow\n") + packet("ERR "+words),
		"version":               begin + packet("version "+words) + "0000",
		"length of a packet":    begin + "zz\x1b\x07" + words,
		"peeled reference":      begin + packet(hash+" refs/tags/a^{}"+words+"\x00\n") + "0000",
		"hash of a reference":   begin + packet(words+" refs/heads/main\x00\n") + "0000",
		"ERR on the first line": begin + packet("ERR "+words+"\n") + "0000",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			service := r.URL.Query().Get("service")
			w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
			_, _ = io.WriteString(w, strings.ReplaceAll(list, "SERVICE", service))
		}))
		for ask, do := range asks {
			remote, err := git.NewRemote(server.URL+"/r.git", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := do(t.Context(), remote); err != nil { // some names are taken as they are
				checkQuoted(t, name+", "+ask, err)
			}
		}
		server.Close()
	}
}

// TestWordsAboutAPushAreQuotedInPart: the report of a push, and what hooks print to a terminal.
func TestWordsAboutAPushAreQuotedInPart(t *testing.T) {
	const hash = "1111111111111111111111111111111111111111"
	short := strings.Repeat("\x1b[2J\u202ew", 6000)
	band := func(number byte, text string) string { return packet(string(number) + text) }
	declined := band(1, packet("unpack ok\n")+packet("ng refs/heads/a hook declined\n")+"0000") + "0000"
	for name, answer := range map[string]string{
		"ng":               band(1, packet("unpack ok\n")+packet("ng refs/heads/a "+short+"\n")+"0000") + "0000",
		"unpack":           band(1, packet("unpack "+short+"\n")+packet("ng refs/heads/a failed\n")+"0000") + "0000",
		"progress":         band(2, hostileWords) + declined,
		"fatal":            band(3, hostileWords) + "0000",
		"much progress":    strings.Repeat(band(2, hostileWords), 20) + band(3, "died") + "0000",
		"another name":     band(1, packet("unpack ok\n")+packet("ng "+short+" no\n")+"0000") + "0000",
		"no report":        band(1, packet(short)+"0000") + "0000",
		"ERR instead":      packet("ERR " + hostileWords),
		"protected branch": band(2, hostileWords+"protected branch") + declined,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if service := r.URL.Query().Get("service"); service != "" {
				w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
				fmt.Fprint(w, packet("# service="+service+"\n")+"0000"+
					packet(hash+" refs/heads/main\x00report-status side-band-64k delete-refs ofs-delta\n")+
					packet(hash+" refs/heads/a\n")+"0000")
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
			_, _ = io.WriteString(w, answer)
		}))
		remote, err := git.NewRemote(server.URL+"/r.git", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		push, err := remote.BeginPush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkQuoted(t, name, push.Send(t.Context(), []git.Update{{Name: "refs/heads/a", Old: plumbing.NewHash(hash)}}, nil))
		push.Close()
		server.Close()
	}
}

// TestAPushIsNotRedirectedElsewhere: neither the question what is there nor the push itself goes to another host or to
// a repository of the host that the credentials are not for.
func TestAPushIsNotRedirectedElsewhere(t *testing.T) {
	server := gittest.New(t)
	own, pay := server.Repository(t, "shop"), server.Repository(t, "pay")
	own.Commit("first", map[string]string{"a": "one"})
	before := pay.Commit("first", map[string]string{"a": "one"})
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	for _, at := range []string{"/info/refs", "/git-receive-pack"} {
		for _, to := range []string{
			pay.URL, other.URL + "/shop.git", server.URL + "/shop.git/../pay.git", server.URL + "/%70ay.git",
		} {
			for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
				server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
					redirected := r.URL.Path == "/shop.git"+at
					if redirected {
						w.Header().Set("Location", to+at+"?"+r.URL.RawQuery)
						w.WriteHeader(status)
					}
					return redirected
				})
				remote, err := git.NewRemote(own.URL, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				remote.BindCredentials(func(_ context.Context, url string) error {
					if url != own.URL {
						return errors.New("not for it")
					}
					return nil
				})
				push, err := remote.BeginPush(t.Context())
				if err == nil {
					now := push.Refs().ByName["refs/heads/main"]
					err = push.Send(t.Context(), []git.Update{{Name: "refs/heads/main", Old: now}}, nil)
					push.Close()
				}
				if err == nil || elsewhere > 0 || pay.Git("rev-parse", "main") != before {
					t.Errorf("%s to %s with %d: %d calls elsewhere, error %v", at, to, status, elsewhere, err)
				}
			}
		}
	}
}
