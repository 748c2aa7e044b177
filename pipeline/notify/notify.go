// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package notify reports the outcome of a run to others: Flux, so that it reconciles at once; receivers of
// CloudEvents; and the Git host, as the status of the commit. It never changes the outcome of a run: a failed
// notification is only reported.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
)

// Run is the content of a notification about a run.
type Run struct {
	// Pipeline is whose run it was, Namespace and Name its identity.
	Namespace, Name string
	// SourceURL and Commit are the source; Commit is empty for a source that is not Git.
	SourceURL, Commit string
	// Run is the run itself, Published what is published now.
	Run       v1alpha1.Run
	Published []v1alpha1.Published
	// Changed reports whether the published output has changed in at least one place, or may have, regardless of
	// the outcome of the run. Flux is notified then.
	Changed bool
	// Waits reports whether the run has not published because its result has to wait for its turn: another run
	// publishes it.
	Waits bool
	// Replaced is closed when a newer run reports on the same commit: then its status is not retried. It may be
	// nil.
	Replaced <-chan struct{}
	// Hurry is closed when others wait for this one and time is short: then no retries are made. It may be nil.
	Hurry <-chan struct{}
	// Page is the address of the run's page, empty where the daemon does not know its own.
	Page string
}

// Pipeline is namespace/name.
func (r Run) Pipeline() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Notifier sends notifications. It is safe for concurrent use.
type Notifier struct {
	// Observe is called with the outcome of each notification, by its kind; it must be quick. It is not called for
	// one that was superseded by a newer one, which is neither sent nor failed. It may be nil, and must be set
	// before the first is sent.
	Observe func(kind string, err error)

	client  *http.Client
	secrets secret.Reader
	tries   int
	wait    time.Duration
}

// New returns a notifier that tries each notification a few times. The dialer connects to servers; nil uses one
// with the default rules.
func New(secrets secret.Reader, dialer *egress.Dialer) *Notifier {
	client := &http.Client{Transport: egress.PerRequest(egress.OrDefault(dialer).Transport()),
		Timeout: 15 * time.Second, CheckRedirect: sameCall}
	return &Notifier{client: client, secrets: secrets, tries: 3, wait: 500 * time.Millisecond}
}

// errElsewhere is a redirect that is not followed. It omits the target: URLs of hooks are secrets.
var errElsewhere = errors.New("the server sends elsewhere with a redirection; give the URL that it sends to")

// sameCall follows redirects within a server that repeat the call, as Git hosts return them for renamed
// repositories. Other redirects would only fetch the target, which succeeds without notifying; and another server
// must not get the token.
func sameCall(next *http.Request, before []*http.Request) error {
	first := before[0]
	if next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host ||
		len(before) > 5 {
		return errElsewhere
	}
	return nil
}

// Kinds of notifications, as spec.notify names them.
const (
	FluxReceiver = "fluxReceiver"
	CloudEvent   = "cloudEvent"
	CommitStatus = "commitStatus"
)

// Send sends every notification, and returns the errors of all that failed. Flux is called only if Run.Changed is
// set.
func (n *Notifier) Send(ctx context.Context, to []v1alpha1.Notification, r Run) error {
	var errs []error
	for _, t := range to {
		var err error
		var kind string
		switch {
		case t.FluxReceiver != nil && r.Changed:
			kind, err = FluxReceiver, n.notifyFlux(ctx, t.FluxReceiver, r)
		case t.CloudEvent != nil:
			kind, err = CloudEvent, n.cloudEvent(ctx, t.CloudEvent, r)
		case t.CommitStatus != nil:
			kind, err = CommitStatus, n.commitStatus(ctx, t.CommitStatus, r)
		}
		if kind != "" && n.Observe != nil && !errors.Is(err, ErrReplaced) {
			n.Observe(kind, err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("sending the %s of %s: %w", kind, r.Pipeline(), err))
		}
	}
	return errors.Join(errs...)
}

// notifyFlux calls a Receiver of type generic-hmac (notification-controller, internal/server/receiver_handlers.go).
func (n *Notifier) notifyFlux(ctx context.Context, e *v1alpha1.Endpoint, r Run) error {
	body, err := json.Marshal(map[string]any{"pipeline": r.Pipeline(), "revision": r.Run.Revision, "published": r.Published})
	if err != nil {
		return err
	}
	token, err := n.readToken(ctx, r.Namespace, e.SecretRef, secret.Purpose{URL: e.URL, Signs: true})
	if err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"application/json"}}
	signBody(h, token, body)
	return n.postWithRetries(n.permitOf(ctx, r.Namespace, e.SecretRef, true), e.URL, h, body, stops{hurry: r.Hurry})
}

// cloudEvent sends a CloudEvent in the binary mode of the HTTP binding. The event's id is the run's, so that a
// repetition can be recognised.
func (n *Notifier) cloudEvent(ctx context.Context, e *v1alpha1.Endpoint, r Run) error {
	body, err := json.Marshal(map[string]any{
		"pipeline": r.Pipeline(), "run": r.Run, "published": r.Published, "source": r.SourceURL, "page": r.Page,
	})
	if err != nil {
		return err
	}
	token, err := n.readToken(ctx, r.Namespace, e.SecretRef, secret.Purpose{URL: e.URL, Signs: true})
	if err != nil {
		return err
	}
	h := http.Header{
		"Content-Type":   {"application/json"},
		"Ce-Specversion": {"1.0"},
		"Ce-Id":          {r.Run.ID},
		"Ce-Source":      {"/prerig.dev/pipelines/" + r.Pipeline()},
		"Ce-Type":        {"dev.prerig.run." + strings.ToLower(r.Run.Outcome)},
		"Ce-Subject":     {r.Pipeline()},
	}
	if !r.Run.Finished.IsZero() {
		h.Set("Ce-Time", r.Run.Finished.UTC().Format(time.RFC3339))
	}
	signBody(h, token, body)
	return n.postWithRetries(n.permitOf(ctx, r.Namespace, e.SecretRef, true), e.URL, h, body, stops{hurry: r.Hurry})
}

// permitOf returns a context whose calls are redirected only to URLs that the secret is for.
func (n *Notifier) permitOf(ctx context.Context, namespace string, ref *meta.LocalObjectReference,
	signs bool) context.Context {
	return egress.WithPermit(ctx, func(ctx context.Context, at *url.URL) error {
		if _, err := n.readToken(ctx, namespace, ref, secret.Purpose{URL: at.String(), Signs: signs}); err != nil {
			return &egress.NotPermittedError{Host: at.Host}
		}
		return nil
	})
}

// readToken returns the key "token" of a secret; nil without a reference.
func (n *Notifier) readToken(ctx context.Context, namespace string, ref *meta.LocalObjectReference,
	purpose secret.Purpose) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	keys, err := n.secrets.Secret(ctx, namespace, ref.Name, purpose)
	if err != nil {
		return nil, err
	}
	token := bytes.TrimSpace(keys["token"])
	if len(token) == 0 {
		return nil, fmt.Errorf("the secret %s has no key token", ref.Name)
	}
	return token, nil
}

// signBody sets X-Signature, which Flux's generic-hmac receivers check and our own generic receivers too.
func signBody(h http.Header, token, body []byte) {
	if token == nil {
		return
	}
	mac := hmac.New(sha256.New, token)
	mac.Write(body)
	h.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// Timeout bounds one notification with all its tries.
const Timeout = time.Minute

// longestWait is the longest time between two tries where the server asks for none.
const longestWait = 10 * time.Second

// ErrReplaced is about a commit's status that was not retried, because a newer one exists.
var ErrReplaced = errors.New("a newer run reports on the same commit")

// stops are what ends the tries, as Run has them.
type stops struct{ replaced, hurry <-chan struct{} }

// postWithRetries sends the body until it is answered with success, or with a refusal that a repetition will not
// change, or until it is stopped. That does not end a try which is under way: the server may do it after the next one.
func (n *Notifier) postWithRetries(ctx context.Context, to string, h http.Header, body []byte, stop stops) error {
	for try := 1; ; try++ {
		again, err := n.postOnce(ctx, to, h, body)
		if err == nil || !again || try >= n.tries {
			return err
		}
		wait := backoff.Delay(n.wait, longestWait, try)
		if answer := (*answerError)(nil); errors.As(err, &answer) {
			wait = max(wait, answer.wait)
		}
		left := Timeout // a server must not hold up for longer who has set no bound
		if until, ok := ctx.Deadline(); ok {
			left = time.Until(until)
		}
		if left < wait {
			return err // it would be too early for the server then
		}
		if stopped, why := waitForTry(ctx, wait, stop); stopped {
			return cmp.Or(why, err)
		}
	}
}

// waitForTry waits until the next try is due, or no try is left. It returns the reason, unless the previous try is
// to be reported.
func waitForTry(ctx context.Context, wait time.Duration, stop stops) (stopped bool, why error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-stop.replaced:
		return true, ErrReplaced
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case <-stop.hurry:
		select {
		case <-stop.replaced: // which is closed before
			return true, ErrReplaced
		default:
			return true, nil
		}
	case <-timer.C:
		return false, nil
	}
}

func (n *Notifier) postOnce(ctx context.Context, to string, h http.Header, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the URL cannot be used")
	}
	req.Header = h
	resp, err := n.client.Do(req)
	if err != nil {
		return !errors.Is(err, errElsewhere) && !egress.IsRefused(err), scrubURL(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests,
		&answerError{resp.StatusCode, string(text), backoff.RetryAfter(resp.Header)}
}

// answerError is a response that is not a success. It omits the server's text, which may repeat the request.
type answerError struct {
	code int
	text string
	wait time.Duration // that the server asks for
}

// Error implements error.
func (e *answerError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
}

// scrubURL removes the URL from a client's error, because URLs of hooks are secrets.
func scrubURL(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
