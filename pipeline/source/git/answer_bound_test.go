// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// packet is one of Git's protocol (gitprotocol-common).
func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// endless are answers that go on with one line, until far more has come than anybody should hold.
var endless = map[string]struct{ service, head, line string }{
	"shallow": {"git-upload-pack", "", packet("shallow " + strings.Repeat("12", 20))},
	"ACK":     {"git-upload-pack", "0000", packet("ACK " + strings.Repeat("12", 20) + " common\n")},
	"report":  {"git-receive-pack", packet("\x01" + packet("unpack ok\n")), packet("\x01" + strings.Repeat(packet("ok refs/heads/x\n"), 1000))},
	"hook":    {"git-receive-pack", packet("\x01" + packet("unpack ok\n")), packet("\x02" + strings.Repeat("working\n", 1000))},
}

func writeEndless(w io.Writer, head, line string) {
	if _, err := io.WriteString(w, head); err != nil {
		return
	}
	lines := strings.Repeat(line, 1<<20/len(line)+1)
	for range 16 {
		if _, err := io.WriteString(w, lines); err != nil {
			return // whom it is for has had enough
		}
	}
}

func TestEndlessAnswersAreCutShort(t *testing.T) {
	for name, answer := range endless {
		t.Run(name, func(t *testing.T) {
			server := gittest.New(t)
			repository := server.Repository(t, "config")
			repository.Commit("first", map[string]string{"a": "a"})
			server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/"+answer.service) {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body)
				writeEndless(w, answer.head, answer.line)
				return true
			})
			server.AnswerSSH = func(service, repository string, channel io.ReadWriter) bool {
				if service != answer.service {
					return false
				}
				command := exec.Command("git", strings.TrimPrefix(service, "git-"), "--advertise-refs", repository)
				command.Stdout = channel
				if err := command.Run(); err != nil {
					t.Error(err)
				}
				_, _ = io.Copy(io.Discard, channel)
				writeEndless(channel, answer.head, answer.line)
				return true
			}
			sshd := server.NewSSH(t)
			overSSH := map[string][]byte{"identity": sshd.Identity, "known_hosts": sshd.KnownHosts}
			for url, secret := range map[string]map[string][]byte{repository.URL: nil, "ssh://git@" + sshd.Address + "/config.git": overSSH} {
				m, r := mirror(t, t.TempDir(), url, git.DefaultLimits()), remote(t, url, secret)
				_, err := m.Fetch(ctx, r, git.Ref{})
				if answer.service == "git-receive-pack" {
					_, err = tryWrite(m, r, "refs/heads/new", map[string][]byte{"x": []byte("x")}, nil)
				}
				if err == nil || !strings.Contains(err.Error(), "in bytes is over the limit of 4194304") {
					t.Errorf("%s: got %v", url, err)
				}
			}
		})
	}
}

// The bound is only on what stands in front of the pack, and many shallow lines are within it.
func TestLongAnswersAreRead(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	hash := repository.Commit("first", map[string]string{"large": noise(t, 5<<20)})
	server.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				answer := httptest.NewRecorder()
				next.ServeHTTP(answer, r)
				// A packet has no line break at its end: a hash that ends in 0 makes the flush begin earlier for a search.
				body := answer.Body.String()
				end := len("0034shallow ") + len(hash)
				if strings.HasPrefix(body, "0034shallow ") {
					_, _ = io.WriteString(w, body[:end]+strings.Repeat(endless["shallow"].line, 50_000)+body[end:])
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	sshd := server.NewSSH(t)
	overSSH := map[string][]byte{"identity": sshd.Identity, "known_hosts": sshd.KnownHosts}
	for url, secret := range map[string]map[string][]byte{repository.URL: nil, "ssh://git@" + sshd.Address + "/config.git": overSSH} {
		commit, err := mirror(t, t.TempDir(), url, git.DefaultLimits()).Fetch(ctx, remote(t, url, secret), git.Ref{})
		if err != nil || commit.Hash.String() != hash {
			t.Errorf("%s: got %+v, %v", url, commit, err)
		}
	}
}
