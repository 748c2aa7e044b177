// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/tcptest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// marker is what a server says that nobody may learn through the daemon.
const marker = "INTERNAL-MARKER-AKIA"

// asks are the questions of a remote that a server can answer wrongly.
var asks = map[string]func(ctx context.Context, r *git.Remote) error{
	"list": func(ctx context.Context, r *git.Remote) error { _, err := r.List(ctx); return err },
	"push": func(ctx context.Context, r *git.Remote) error {
		p, err := r.BeginPush(ctx)
		if err == nil {
			p.Close()
		}
		return err
	},
}

func TestAnswersOfGitServersAreNotQuoted(t *testing.T) {
	for _, status := range []int{200, 400, 401, 403, 404, 410, 418, 500} {
		for _, contentType := range []string{"text/plain", "text/html", "application/x-git-upload-pack-advertisement"} {
			for _, body := range []string{marker, "0016 " + marker + "0000", "001e# service=git-upload-pack\n00000032" + marker + " " + marker + "\n0000"} {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", contentType)
					w.WriteHeader(status)
					_, _ = io.WriteString(w, strings.ReplaceAll(body, "git-upload-pack", r.URL.Query().Get("service")))
				}))
				for ask, do := range asks {
					remote, err := git.NewRemote(server.URL+"/r.git", nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := do(t.Context(), remote); err == nil || strings.Contains(err.Error(), marker) {
						t.Errorf("%d, %s, %s: got %v", status, contentType, ask, err)
					}
				}
				server.Close()
			}
		}
	}
}

// A server that is not known yet is not quoted, whatever it says at first.
func TestGreetingsOfSSHServersAreNotQuoted(t *testing.T) {
	other := gittest.New(t).NewSSH(t)
	_, known, _ := strings.Cut(string(other.KnownHosts), " ")
	for name, greet := range map[string]func(net.Conn){
		"no ssh": func(c net.Conn) { fmt.Fprintf(c, "%s\r\n", marker) },
		"lines": func(c net.Conn) {
			fmt.Fprintf(c, "%s\r\nSSH-2.0-%s\r\n%s", marker, marker, strings.Repeat(marker, 100))
		},
		"goodbye": func(c net.Conn) { writeGoodbye(c, marker) },
		"banner": func(c net.Conn) {
			config := &ssh.ServerConfig{NoClientAuth: false, PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				return nil, &ssh.BannerError{Err: errors.New(marker), Message: marker}
			}, BannerCallback: func(ssh.ConnMetadata) string { return marker }}
			signer, err := ssh.ParsePrivateKey(other.Identity)
			if err != nil {
				t.Error(err)
				return
			}
			config.AddHostKey(signer)
			_, _, _, _ = ssh.NewServerConn(c, config)
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := tcptest.Serve(t, greet)
			line := known
			if name == "banner" {
				signer, err := ssh.ParsePrivateKey(other.Identity)
				if err != nil {
					t.Fatal(err)
				}
				line = string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
			}
			host, port, _ := net.SplitHostPort(address)
			remote, err := git.NewRemote("ssh://git@"+address+"/r.git", map[string][]byte{
				git.KeyIdentity: other.Identity, git.KeyKnownHosts: fmt.Appendf(nil, "[%s]:%s %s", host, port, line),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for ask, do := range asks {
				if err := do(t.Context(), remote); err == nil || strings.Contains(err.Error(), marker) {
					t.Errorf("%s: got %v", ask, err)
				}
			}
		})
	}
}

// writeGoodbye is a server that hangs up before keys are exchanged (RFC 4253, sections 6 and 11.1).
func writeGoodbye(c net.Conn, text string) {
	message := ssh.Marshal(struct {
		Reason   uint32 `sshtype:"1"`
		Message  string
		Language string
	}{2, text, ""})
	padding := 8 - (5+len(message))%8 + 8
	packet := append([]byte{0, 0, 0, byte(1 + len(message) + padding), byte(padding)}, message...)
	_, _ = io.WriteString(c, "SSH-2.0-test\r\n")
	_, _ = c.Write(append(packet, make([]byte, padding)...))
	_, _ = io.Copy(io.Discard, c)
}

// A list of references that stops, is cut off, or is none, says so, and is never an empty repository.
func TestCutOffListIsNoEmptyRepository(t *testing.T) {
	const hash = "1111111111111111111111111111111111111111"
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, c := range map[string]struct {
		contentType, body string
		hang              bool
		want              string
	}{
		"one byte at a time":    {"application/x-git-SERVICE-advertisement", "0000", true, "did not go on"},
		"nothing after headers": {"application/x-git-SERVICE-advertisement", "", true, "did not go on"},
		"hangs before the list": {"", packet("# service=SERVICE\n") + "0000", true, "did not go on: 34 bytes of its list of references came"},
		"hangs in the list":     {"", packet("# service=SERVICE\n") + "0000" + packet(hash+" HEAD\x00symref=HEAD:refs/heads/main\n"), true, "did not go on"},
		"ends in the list":      {"", packet("# service=SERVICE\n") + "0000" + packet(hash+" HEAD\x00symref=HEAD:refs/heads/main\n"), false, "ends in its middle"},
		"ends before the list":  {"", packet("# service=SERVICE\n") + "0000", false, "ends in its middle"},
		"ends in a packet":      {"", packet("# service=SERVICE\n") + "0000" + packet(hash + " HEAD\x00agent=x\n")[:30], false, "ends in its middle"},
		"nothing at all":        {"", "", false, "the server gave no answer"},
		"an end and no list":    {"", "0000", false, "not of Git's protocol"},
		"another service":       {"", packet("# service=git-other\n") + "00000000", false, "not of Git's protocol"},
		"a page to sign in":     {"text/html; charset=utf-8", "<!doctype html><title>Sign in</title>", false, "the server answers with a web page"},
		"a file of a web host":  {"application/json", `{"message": "ok"}`, false, "not of Git's protocol: it is application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				service := r.URL.Query().Get("service")
				if c.contentType != "" {
					w.Header().Set("Content-Type", strings.ReplaceAll(c.contentType, "SERVICE", service))
				}
				body := strings.ReplaceAll(c.body, packet("# service=SERVICE\n"), packet("# service="+service+"\n"))
				if !c.hang {
					_, _ = io.WriteString(w, body)
					return
				}
				w.WriteHeader(http.StatusOK)
				flush := http.NewResponseController(w)
				if name == "one byte at a time" {
					body = body[:1] // the next would come long after anybody waits
				}
				_, _ = io.WriteString(w, body)
				_ = flush.Flush()
				<-r.Context().Done()
			}))
			defer server.Close()
			for ask, do := range asks {
				remote, err := git.NewRemote(server.URL+"/r.git", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if c.hang {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				want := c.want
				if ask == "push" {
					want = strings.ReplaceAll(want, "34", strconv.Itoa(len(packet("# service=git-receive-pack\n"))+4))
				}
				err = do(ctx, remote)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", ask, err, want)
				}
			}
		})
	}
}

// A server of a pipeline cannot be one that hands out credentials, in whatever way it is reached.
func TestMetadataIsNoGitServer(t *testing.T) {
	rules, err := egress.NewRules(nil, []string{"private"})
	if err != nil {
		t.Fatal(err)
	}
	inside := gittest.New(t)
	repository := inside.Repository(t, "inside")
	repository.Commit("first", map[string]string{"a": "one"})
	over := inside.NewSSH(t)
	keys := map[string][]byte{git.KeyIdentity: over.Identity, git.KeyKnownHosts: []byte("169.254.169.254 " + strings.SplitN(string(over.KnownHosts), " ", 2)[1] + string(over.KnownHosts))}
	for url, dialer := range map[string]*egress.Dialer{
		"http://169.254.169.254/latest/meta-data": nil,
		"ssh://git@169.254.169.254/r.git":         nil,
		"http://[::ffff:169.254.169.254]/r.git":   nil,
		repository.URL:                            egress.NewDialer(rules),
		"ssh://git@" + over.Address + "/inside":   egress.NewDialer(rules),
	} {
		secret := map[string][]byte(nil)
		if strings.HasPrefix(url, "ssh") {
			secret = keys
		}
		remote, err := git.NewRemote(url, secret, dialer)
		if err != nil {
			t.Fatal(err)
		}
		for ask, do := range asks {
			if err := do(t.Context(), remote); !egress.IsRefused(err) || !strings.Contains(err.Error(), "egress.allow") {
				t.Errorf("%s, %s: got %v", url, ask, err)
			}
		}
	}
}
