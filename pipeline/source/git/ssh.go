// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// go-git's own ssh transport ignores the context until a server has let it in, and then only abandons the waiting
// caller. Here the end of a context closes the connection, which is the only way to wake up all readers of it.

// sshServer is a repository on a server that speaks ssh.
type sshServer struct {
	address, path string
	config        *ssh.ClientConfig
	// patience is the time in which the server must have answered, shaken hands and started the command.
	patience time.Duration
	// dial connects to the address.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// goodbye is the time that a server has for its last words.
const goodbye = 3 * time.Second

// startSession connects and runs git-upload-pack or git-receive-pack.
func (r *sshServer) startSession(ctx context.Context, service string) (*sshSession, error) {
	deadline := time.Now().Add(r.patience)
	dialing, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := r.dial(dialing, "tcp", r.address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	s := &sshSession{conn: conn, receives: service == transport.ReceivePackServiceName}
	err = s.runInContext(ctx, func() error {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		if err := s.startService(r, service); err != nil {
			return err
		}
		return conn.SetDeadline(time.Time{})
	})
	if err == nil {
		return s, nil
	}
	s.dropConnection()
	if ctx.Err() == nil && !time.Now().Before(deadline) {
		return nil, fmt.Errorf("the server accepts the connection and did not start %s within %s: %w", service, r.patience, err)
	}
	return nil, err
}

// sshSession is one command on the server. It implements both kinds of go-git's sessions.
type sshSession struct {
	conn     net.Conn
	client   *ssh.Client // nil until the handshake is done
	session  *ssh.Session
	in       io.WriteCloser
	out      io.Reader
	said     tailBuffer // on the standard error; to be read after Wait
	receives bool
	asked    bool // for a pack, or sent one
	once     sync.Once
}

func (s *sshSession) startService(r *sshServer, service string) error {
	conn, channels, requests, err := ssh.NewClientConn(s.conn, r.address, r.config)
	if err != nil {
		return withoutGoodbye(err)
	}
	s.client = ssh.NewClient(conn, channels, requests)
	if s.session, err = s.client.NewSession(); err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	if s.in, err = s.session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return err
	}
	s.session.Stderr = &s.said
	if err := s.session.Start(service + " " + shellQuote(r.path)); err != nil {
		return fmt.Errorf("starting %s: %w", service, err)
	}
	return nil
}

// goodbyeText is the message of a server that disconnects, as golang.org/x/crypto/ssh quotes it.
var goodbyeText = lazyregexp.New(`(ssh: disconnect, reason \d+): .*`)

// withoutGoodbye returns an error without the words of a server that is not known to be the right one yet.
func withoutGoodbye(err error) error {
	if text := err.Error(); goodbyeText.MatchString(text) {
		return errors.New(goodbyeText.ReplaceAllString(text, "$1"))
	}
	return err
}

// shellQuote is a path for the server's shell. Some shells take an exclamation mark for history even between quotes.
func shellQuote(path string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(path) + "'"
}

// runInContext does one part of the conversation, which ends with the context.
func (s *sshSession) runInContext(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, s.dropConnection)
	defer stop()
	err := do()
	if err != nil && ctx.Err() != nil {
		// The errors that a closed connection causes are meaningless.
		return ctx.Err()
	}
	return err
}

// dropConnection closes the connection without another word.
func (s *sshSession) dropConnection() { s.conn.Close() }

// addRemoteOutput adds the server's standard error, which contains its reasons.
func (s *sshSession) addRemoteOutput(err error) error {
	if s.conn.SetDeadline(time.Now().Add(goodbye)) != nil {
		return err
	}
	_ = s.session.Wait()
	text := s.said.String()
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// AdvertisedReferences implements transport.Session.
func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext implements transport.Session.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	lease := budget.Memory(ctx, s.conn.RemoteAddr().String())
	defer lease.Release()
	err := s.runInContext(ctx, func() error {
		list, err := readAdvertised(ctx, lease, s.out, "")
		if err == nil {
			err = refs.Decode(bytes.NewReader(list))
		}
		if err == nil || errors.Is(err, packp.ErrEmptyAdvRefs) {
			return nil
		}
		return s.addRemoteOutput(err)
	})
	if err != nil {
		return nil, err
	}
	if !s.receives && refs.IsEmpty() {
		return nil, transport.ErrEmptyRemoteRepository
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// UploadPack implements transport.UploadPackSession. The context holds until the response is closed.
func (s *sshSession) UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if request.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	if err := request.Validate(); err != nil {
		return nil, err
	}
	s.asked = true
	response := packp.NewUploadPackResponse(request)
	err := s.runInContext(ctx, func() error {
		if err := s.sendUploadRequest(request); err != nil {
			return s.addRemoteOutput(fmt.Errorf("asking for objects: %w", err))
		}
		pack := &sshPack{s: s, ctx: ctx, stop: context.AfterFunc(ctx, s.dropConnection)}
		if err := response.Decode(readCloser{boundedByContext(ctx, pack), pack}); err != nil {
			return s.addRemoteOutput(fmt.Errorf("reading the answer: %w", err))
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return response, nil
}

func (s *sshSession) sendUploadRequest(request *packp.UploadPackRequest) error {
	if err := request.UploadRequest.Encode(s.in); err != nil {
		return err
	}
	if err := request.UploadHaves.Encode(s.in, true); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// sshPack is what the server sends. Closing it ends the session.
type sshPack struct {
	s    *sshSession
	ctx  context.Context
	stop func() bool
}

func (p *sshPack) Read(b []byte) (int, error) {
	n, err := p.s.out.Read(b)
	if err != nil && p.ctx.Err() != nil {
		return n, p.ctx.Err() // and not the end of the pack
	}
	return n, err
}

func (p *sshPack) Close() error {
	p.stop()
	return p.s.Close()
}

// ReceivePack implements transport.ReceivePackSession.
func (s *sshSession) ReceivePack(ctx context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.asked = true
	report := packp.NewReportStatus()
	err := s.runInContext(ctx, func() error {
		err := request.Encode(s.in)
		if err == nil {
			err = s.in.Close()
		}
		if err != nil {
			return s.addRemoteOutput(fmt.Errorf("sending objects: %w", err))
		}
		if !request.Capabilities.Supports(capability.ReportStatus) {
			// The exit status of the command is the only information available.
			return s.session.Wait()
		}
		if err := report.Decode(demuxReport(request, boundedByContext(ctx, s.out))); err != nil {
			return s.addRemoteOutput(fmt.Errorf("reading the answer: %w", err))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return report, report.Error()
}

// demuxReport extracts the report from the channels of an answer.
func demuxReport(request *packp.ReferenceUpdateRequest, answer io.Reader) io.Reader {
	kind := sideband.Sideband64k
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
	case request.Capabilities.Supports(capability.Sideband):
		kind = sideband.Sideband
	default:
		return answer
	}
	channels := sideband.NewDemuxer(kind, answer)
	channels.Progress = request.Progress
	return channels
}

// Close ends the command and the connection.
func (s *sshSession) Close() error {
	s.once.Do(func() {
		// A server that does not read must not delay the end of the session.
		if s.conn.SetDeadline(time.Now().Add(goodbye)) == nil && !s.asked {
			_, _ = s.in.Write(pktline.FlushPkt) // no objects are wanted
		}
		s.client.Close()
		s.dropConnection()
	})
	return nil
}
