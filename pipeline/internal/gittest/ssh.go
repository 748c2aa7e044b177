// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/pipeline/internal/tcptest"
)

// SSH is an ssh server that runs git's own commands on the repositories of a Server, for one key.
type SSH struct {
	// Address of the server, host:port.
	Address string
	// Identity is the private key that it accepts, KnownHosts the line with its own key.
	Identity, KnownHosts []byte
}

// NewSSH starts an ssh server for the repositories of s.
func (s *Server) NewSSH(t testing.TB) *SSH {
	t.Helper()
	hostKey, _ := newKey(t)
	userKey, identity := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(userKey.PublicKey().Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(hostKey)
	address := tcptest.Serve(t, func(conn net.Conn) { s.serveSSH(conn, config) })
	host, port, _ := net.SplitHostPort(address)
	line := fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(hostKey.PublicKey()))
	return &SSH{Address: address, Identity: identity, KnownHosts: []byte(line)}
}

func newKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func (s *Server) serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *Server) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var payload struct{ Command string }
		_ = ssh.Unmarshal(request.Payload, &payload)
		name, argument, _ := strings.Cut(payload.Command, " ")
		_ = request.Reply(true, nil)
		repository := s.Root + "/" + strings.Trim(argument, "'/")
		if s.AnswerSSH != nil && s.AnswerSSH(name, repository, channel) {
			return
		}
		command := exec.Command("git", strings.TrimPrefix(name, "git-"), repository)
		command.Stdin, command.Stdout, command.Stderr = channel, channel, channel.Stderr()
		status := struct{ Status uint32 }{}
		if command.Run() != nil {
			status.Status = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}
