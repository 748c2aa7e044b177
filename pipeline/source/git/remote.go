// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
)

// Hash of a Git object.
type Hash = plumbing.Hash

// Remote is a repository on a server, with the credentials to reach it. It keeps connections open and is safe for use by
// several goroutines.
type Remote struct {
	url      string
	endpoint *transport.Endpoint
	ssh      *sshServer // nil for https
	client   transport.Transport
	auth     transport.AuthMethod
	// lastAccess is when the server last listed the references for these credentials, nil for never.
	lastAccess atomic.Pointer[time.Time]
	listings   sharedListing
	// isFor returns an error where the credentials are not for a URL; nil where they are for all of the host.
	isFor func(ctx context.Context, url string) error
}

// BindCredentials has redirects to other paths of the host followed only where the credentials are for these. It is
// called before the remote is used.
func (r *Remote) BindCredentials(isFor func(ctx context.Context, url string) error) { r.isFor = isFor }

// NewRemote returns a remote for a URL (https, http, ssh or user@host:path) and the keys of a secret. The dialer
// connects to it; nil means a dialer with the default rules.
func NewRemote(url string, secret map[string][]byte, dialer *egress.Dialer) (*Remote, error) {
	dialer = egress.OrDefault(dialer)
	endpoint, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("reading the repository's URL: %w", err)
	}
	remote := &Remote{url: url, endpoint: endpoint, listings: newSharedListing()}
	switch endpoint.Protocol {
	case "http", "https":
		if endpoint.Password != "" {
			return nil, errors.New("the repository's URL holds credentials; give them in a secret")
		}
		if remote.auth, err = httpAuth(secret); err != nil {
			return nil, err
		}
		t, err := httpTransport(secret[KeyCA])
		if err != nil {
			return nil, err
		}
		checked := &answerChecker{&retryTransport{dialer.Guard(t), 100 * time.Millisecond}}
		remote.client = githttp.NewClient(&http.Client{Transport: checked, CheckRedirect: remote.checkRedirect})
	case "ssh":
		port := endpoint.Port
		if port <= 0 {
			port = gitssh.DefaultPort
		}
		user := endpoint.User
		if user == "" {
			user = "git"
		}
		address := net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(port)) // it has brackets around an IPv6 address
		config, err := sshConfig(secret, user, address)
		if err != nil {
			return nil, err
		}
		// No file of a user is asked: ~/.ssh/config could send a connection elsewhere.
		remote.ssh = &sshServer{address: address, path: endpoint.Path, config: config, patience: connectTimeout, dial: dialer.DialTunnel}
	default:
		return nil, fmt.Errorf("repository URL has the scheme %q; https, http and ssh are supported", endpoint.Protocol)
	}
	return remote, nil
}

// URL of the repository. It holds no credentials.
func (r *Remote) URL() string { return r.url }

// Refs are the references of a remote by their full names. HEAD is included if the server names it.
type Refs struct {
	// ByName maps each reference to its target, which is a tag object for an annotated tag.
	ByName map[string]Hash
	// Peeled maps each annotated tag to its commit.
	Peeled map[string]Hash
	// Default is the full name of the branch that HEAD names, "" if unknown.
	Default string
	caps    *capability.List
}

func refsOf(adv *packp.AdvRefs) Refs {
	refs := Refs{ByName: adv.References, Peeled: adv.Peeled, caps: adv.Capabilities}
	if refs.ByName == nil {
		refs.ByName = map[string]Hash{}
	}
	for _, symref := range adv.Capabilities.Get(capability.SymRef) {
		if name, ok := strings.CutPrefix(symref, "HEAD:"); ok {
			refs.Default = name
		}
	}
	if refs.Default == "" && adv.Head != nil {
		for _, name := range []string{"refs/heads/main", "refs/heads/master"} {
			if refs.ByName[name] == *adv.Head {
				refs.Default = name
				break
			}
		}
	}
	return refs
}

// List asks the remote for its references. An empty repository has none.
func (r *Remote) List(ctx context.Context) (Refs, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, err := r.openUploadPack(ctx)
	if err != nil {
		return Refs{}, err
	}
	defer session.Close()
	return r.readAdvertised(ctx, session)
}

func (r *Remote) openUploadPack(ctx context.Context) (transport.UploadPackSession, error) {
	var session transport.UploadPackSession
	var err error
	if r.ssh != nil {
		session, err = r.ssh.startSession(ctx, transport.UploadPackServiceName)
	} else {
		// This does not contact the server yet.
		session, err = r.client.NewUploadPackSession(copyOf(r.endpoint), r.auth)
	}
	if err != nil {
		return nil, r.explainError("connecting to", err)
	}
	return session, nil
}

// copyOf: a session changes its endpoint when it is redirected.
func copyOf(endpoint *transport.Endpoint) *transport.Endpoint {
	e := *endpoint
	return &e
}

func (r *Remote) readAdvertised(ctx context.Context, session transport.UploadPackSession) (Refs, error) {
	asked := time.Now()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		r.recordProvenAccess()
		refs := Refs{ByName: map[string]Hash{}, caps: capability.NewList()}
		r.listings.keepNewestRefs(refs, asked)
		return refs, nil
	}
	if err != nil {
		return Refs{}, r.explainError("listing the references of", err)
	}
	r.recordProvenAccess()
	refs := refsOf(adv)
	r.listings.keepNewestRefs(refs, asked)
	return refs, nil
}

// explainError adds what a user can do about an error. Servers answer 401 to wrong credentials as well as to none,
// and 403 to what the credentials do not permit.
func (r *Remote) explainError(doing string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired) && r.auth == nil:
		advice = "the server asks for credentials; give them with secretRef: "
	case errors.Is(err, transport.ErrAuthenticationRequired):
		advice = "the server refuses the credentials of the secret: "
	case errors.Is(err, transport.ErrAuthorizationFailed) && r.auth == nil:
		advice = "the server does not allow it without credentials; give them with secretRef: "
	case errors.Is(err, transport.ErrAuthorizationFailed):
		advice = "the server does not allow it with the credentials of the secret: "
	}
	for _, cause := range []error{transport.ErrAuthenticationRequired, transport.ErrAuthorizationFailed, transport.ErrRepositoryNotFound} {
		if errors.Is(err, cause) && err.Error() == cause.Error()+": " {
			err = cause // go-git adds the body, which answerChecker removes
		}
	}
	var unexpected *packp.ErrUnexpectedData
	if errors.As(err, &unexpected) {
		err = errors.New(unexpected.Msg) // without the data
	}
	return fmt.Errorf("%s %s: %s%w", doing, r.url, advice, toldError{err})
}

// maxTold bounds what is quoted of a server's own words, such as those of an ERR packet or of a hook.
const maxTold = 300

// toldError is an error with words of a server, no more of them than may be quoted.
type toldError struct{ err error }

func (e toldError) Error() string { return foreign.Text(e.err.Error(), maxTold) }

func (e toldError) Unwrap() error { return e.err }

// ErrMoved is the cause of a push that came too late: the branch does not have the expected value any more.
var ErrMoved = errors.New("the branch has moved")

// ErrRefused is the cause of a push that the server has examined and rejected, for example because of a hook or
// rule. The reason may be the pushed content; if the branch is protected from every push, this is not the cause.
var ErrRefused = errors.New("the server refuses it")

// Update changes one reference from an expected value to a new one. The zero hash means that it does not exist.
type Update struct {
	Name     string
	Old, New Hash
}

// Push is a connection for pushing.
type Push struct {
	remote  *Remote
	session transport.ReceivePackSession
	refs    Refs
}

// BeginPush connects and learns what the references are now.
func (r *Remote) BeginPush(ctx context.Context) (*Push, error) {
	var session transport.ReceivePackSession
	var err error
	if r.ssh != nil {
		session, err = r.ssh.startSession(ctx, transport.ReceivePackServiceName)
	} else {
		session, err = r.client.NewReceivePackSession(copyOf(r.endpoint), r.auth)
	}
	if err != nil {
		return nil, r.explainError("connecting to", err)
	}
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		session.Close()
		return nil, r.explainError("asking to push to", err)
	}
	return &Push{remote: r, session: session, refs: refsOf(adv)}, nil
}

// Refs are the references when the push began.
func (p *Push) Refs() Refs { return p.refs }

// Close ends the connection.
func (p *Push) Close() { p.session.Close() }

// Send pushes the objects of a pack, nil if the references are only deleted, and then updates the references,
// atomically if the server supports it. The cause of the error is ErrMoved if one of them had a value other than
// the expected one, and ErrRefused if the server has examined the push and rejected it.
func (p *Push) Send(ctx context.Context, updates []Update, pack io.Reader) error {
	request := packp.NewReferenceUpdateRequestFromCapabilities(p.refs.caps)
	if p.refs.caps.Supports(capability.Sideband64k) {
		if err := request.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
	}
	if len(updates) > 1 && p.refs.caps.Supports(capability.Atomic) {
		if err := request.Capabilities.Set(capability.Atomic); err != nil {
			return err
		}
	}
	for _, update := range updates {
		if now := p.refs.ByName[update.Name]; now != update.Old {
			return fmt.Errorf("pushing %s to %s: it is at %s, expected %s: %w", update.Name, p.remote.url, now, update.Old, ErrMoved)
		}
		request.Commands = append(request.Commands, &packp.Command{Name: plumbing.ReferenceName(update.Name), Old: update.Old, New: update.New})
	}
	if pack != nil {
		request.Packfile = io.NopCloser(pack)
	}
	messages := &tailBuffer{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request.Progress = sideband.Progress(messages)
	asking, bound := boundAnswer(ctx, sizeOfReport)
	report, err := p.session.ReceivePack(asking, request)
	err = bound.explainExceededBound(err)
	var failure error
	switch {
	case err == nil && report == nil:
		return p.checkOutcome(ctx, updates)
	case err == nil:
		return nil
	case report != nil && report.Error() != nil:
		failure = p.explainRefusal(report.Error(), messages.String())
	default:
		failure = p.explainFailure(err, messages.String())
	}
	if isAnswer(err) || errors.Is(failure, ErrRefused) || p.checkOutcome(ctx, updates) != nil {
		return failure
	}
	return nil // the answer was lost, or that of a repetition came
}

// explainFailure returns the error for a push without a report from the server, with the server's messages.
func (p *Push) explainFailure(err error, said string) error {
	if isMoved(err) || isMoved(errors.New(said)) {
		return fmt.Errorf("pushing to %s: %w (%w)", p.remote.url, ErrMoved, toldError{err})
	}
	if said != "" {
		return fmt.Errorf("pushing to %s: %w: %s", p.remote.url, toldError{err}, foreign.Text(said, maxTold))
	}
	return p.remote.explainError("pushing to", err)
}

// isAnswer reports whether an error is a server's confirmation that it has made no change.
func isAnswer(err error) bool {
	return errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrRepositoryNotFound)
}

// explainRefusal returns the error for a push that the server has reported as failed, with the server's messages.
func (p *Push) explainRefusal(err error, said string) error {
	protected := strings.Contains(strings.ToLower(err.Error()+said), "protected branch") // the wording of GitHub, GitLab, Gitea and Forgejo
	if failure := p.explainFailure(err, said); protected || errors.Is(failure, ErrMoved) {
		return failure
	}
	err = toldError{err}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, foreign.Text(said, maxTold))
	}
	return fmt.Errorf("pushing to %s: %w: %w", p.remote.url, ErrRefused, err)
}

// checkOutcome determines the outcome of a push that the server did not report, or whose answer was lost. Not all
// servers send reports, and an empty answer may come from a proxy of the server, which has never seen the push.
func (p *Push) checkOutcome(ctx context.Context, updates []Update) error {
	refs, err := p.remote.List(ctx)
	if err != nil {
		return fmt.Errorf("checking what became of a push: %w", err)
	}
	for _, update := range updates {
		if now := refs.ByName[update.Name]; now != update.New {
			return fmt.Errorf("pushing %s to %s: the server gave no answer, and it is at %s", update.Name, p.remote.url, now)
		}
	}
	return nil
}

// isMoved recognizes the messages of servers when a reference has changed during the push. The texts are git's own
// (builtin/receive-pack.c, refs/files-backend.c) and those of hosts that have their own implementation.
func isMoved(err error) bool {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{
		"non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref", "reference already exists",
		"incorrect old value", "stale info", "but expected", "failed to lock",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// tailBuffer keeps the end of a server's output.
type tailBuffer struct{ text []byte }

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - 2048; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?"))
}

// demuxPack extracts the pack from the channels of a response.
func demuxPack(request *packp.UploadPackRequest, response io.Reader) io.Reader {
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}
