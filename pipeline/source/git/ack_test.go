// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// pickyServer answers as git does, but 400 to whoever asks for objects without multi_ack, as Azure DevOps does (TF401041). It does not
// tell of one capability.
type pickyServer struct {
	t      *testing.T
	hidden string
	// acks are how many lines that begin with ACK each answer has in front of its pack.
	acks []int
}

func (p *pickyServer) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			p.t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		asks := strings.HasSuffix(r.URL.Path, "/git-upload-pack")
		if asks && !bytes.Contains(body, []byte(" multi_ack")) {
			http.Error(w, "TF401041: The request is not supported.", http.StatusBadRequest)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		head, _, isPack := bytes.Cut(answer.Body.Bytes(), []byte("PACK"))
		if asks && isPack {
			p.acks = append(p.acks, bytes.Count(head, []byte("ACK "))) // NAK ends its line
		}
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		said := answer.Body.Bytes()
		if p.hidden != "" {
			said = bytes.Replace(said, []byte(" "+p.hidden+" "), []byte(" "+strings.Repeat("x", len(p.hidden))+" "), 1)
		}
		_, _ = w.Write(said)
	})
}

func TestServersThatWantMultiACK(t *testing.T) {
	for name, hidden := range map[string]string{"detailed": "", "simple": "multi_ack_detailed", "without shallow": "shallow"} {
		t.Run(name, func(t *testing.T) {
			server, picky := gittest.New(t), &pickyServer{t: t, hidden: hidden}
			server.Wrap(picky.around)
			followBranches(t, server, server.URL+"/config.git", nil)
			most := 0
			for _, acks := range picky.acks {
				most = max(most, acks)
			}
			if hidden != "shallow" && most < 3 {
				t.Errorf("the answers have %v lines with ACK: these are not the answers that this is about", picky.acks)
			}
		})
	}
	t.Run("ssh", func(t *testing.T) {
		server := gittest.New(t)
		sshd := server.NewSSH(t)
		followBranches(t, server, "ssh://git@"+sshd.Address+"/config.git", map[string][]byte{"identity": sshd.Identity, "known_hosts": sshd.KnownHosts})
	})
}

// followBranches fetches from a repository of which the mirror has nothing, some commits, and commits of which the server has none; and
// pushes to it.
func followBranches(t *testing.T, server *gittest.Server, url string, secret map[string][]byte) {
	t.Helper()
	repository := server.Repository(t, "config")
	m := mirror(t, t.TempDir(), url, git.DefaultLimits())
	fetch := func(branch, hash, content string) {
		t.Helper()
		commit, err := m.Fetch(ctx, remote(t, url, secret), git.Ref{Name: "refs/heads/" + branch})
		if err != nil {
			t.Fatal(err)
		}
		if commit.Hash.String() != hash || read(t, m, commit, "f") != content {
			t.Errorf("%s: got %+v", branch, commit)
		}
	}
	fetch("main", repository.Commit("first", map[string]string{"f": "first", "g": "g"}), "first")
	for i := range 4 {
		branch, content := fmt.Sprint("b", i), fmt.Sprint("content ", i)
		hash := repository.Commit(content, map[string]string{"f": content})
		repository.Git("branch", branch, "main")
		fetch(branch, hash, content)
	}
	fetch("main", repository.Commit("again", map[string]string{"f": "again"}), "again")

	if err := os.RemoveAll(repository.Bare); err != nil {
		t.Fatal(err)
	}
	repository = server.Repository(t, "config")
	fetch("main", repository.Commit("anew", map[string]string{"f": "anew", "h": "h"}), "anew")
	fetch("main", repository.Commit("more", map[string]string{"f": "more"}), "more")

	write(t, m, remote(t, url, secret), "refs/heads/main", map[string][]byte{"pushed": []byte("p")})
	if got := repository.Git("show", "main:pushed"); got != "p" {
		t.Errorf("got %q", got)
	}
}
