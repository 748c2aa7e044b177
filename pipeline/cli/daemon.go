// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/internal/process/trust"
	"github.com/prerig/prerig/pipeline/server"
)

// daemonClient is the daemon that a command talks to.
type daemonClient struct {
	state, url, tokenFile, caFile string
	// plainHTTP sends the token in the clear.
	plainHTTP bool
	// client is made once, so that a command that asks again and again does so over one connection.
	client *http.Client
}

func (d *daemonClient) addFlags(cmd *cobra.Command) {
	state := os.Getenv("PRERIG_STATE")
	if state == "" {
		state = "state"
	}
	cmd.Flags().StringVar(&d.state, "state", state,
		"state directory of a local daemon, to connect to its socket (also PRERIG_STATE)")
	cmd.Flags().StringVar(&d.url, "server", "", "URL of the daemon's web page, to use instead of the socket")
	cmd.Flags().StringVar(&d.tokenFile, "token-file", "",
		"file with the token for --server (default: admin.token in the state directory)")
	cmd.Flags().StringVar(&d.caFile, "ca-file", "",
		"file with CA certificates to verify --server, in addition to the system's")
	cmd.Flags().BoolVar(&d.plainHTTP, "plain-http", false,
		"allow sending the token unencrypted to a remote http:// server")
	mustRegister(cmd.MarkFlagFilename("ca-file"))
	mustRegister(cmd.MarkFlagDirname("state"))
	mustRegister(cmd.MarkFlagFilename("token-file"))
}

// callAPI asks the daemon and decodes its answer.
func (d *daemonClient) callAPI(ctx context.Context, method, path string, body, answer any) error {
	base, err := d.openClient()
	if err != nil {
		return err
	}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, reader)
	if err != nil {
		return fmt.Errorf("calling the daemon: %w", err)
	}
	if d.url != "" {
		if err := d.addToken(request); err != nil {
			return err
		}
	}
	response, err := d.client.Do(request)
	if err != nil {
		if d.url == "" && ctx.Err() == nil {
			return fmt.Errorf("calling the daemon at %s: %w; is it running (prerig serve), and is --state its directory? Use --server for a remote daemon", filepath.Join(d.state, "prerig.sock"), innermostError(err))
		}
		at := d.url
		if at == "" {
			at = filepath.Join(d.state, "prerig.sock")
		}
		return fmt.Errorf("calling the daemon at %s: %w%s", at, innermostError(err), connectionHint(err, d.url))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 256<<20))
	if err != nil {
		return fmt.Errorf("reading the daemon's response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		var told struct{ Error string }
		// The guard answers in plain text; a page is not ours.
		plain := strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") &&
			response.StatusCode != http.StatusNotFound
		if json.Unmarshal(text, &told) != nil && plain {
			told.Error = strings.TrimSpace(string(text))
		}
		if told.Error == "" {
			told.Error = d.describeForeignResponse(response.Status)
		}
		return daemonError{response.StatusCode, told.Error}
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("reading the daemon's response: %s: %w",
			d.describeForeignResponse("the response is not JSON"), err)
	}
	return nil
}

// describeForeignResponse describes a server whose response is not one of the API.
func (d *daemonClient) describeForeignResponse(how string) string {
	if d.url == "" {
		return how
	}
	return how + "; is " + d.url + " the address of its page (--admin-listen of prerig serve)?"
}

// openClient creates the client and returns the base of the API's URLs.
func (d *daemonClient) openClient() (base string, err error) {
	base = strings.TrimSuffix(d.url, "/")
	if d.url != "" && !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return "", fmt.Errorf("the flag --server must be a URL that begins with http:// or https://, found %q", d.url)
	}
	if d.client == nil {
		// The API does not redirect. What does could send the token elsewhere, or on in the clear.
		d.client = &http.Client{Timeout: 60 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if d.caFile != "" {
			if d.client.Transport, err = trustingTransport(d.caFile); err != nil {
				return "", err
			}
		}
		if d.url == "" {
			socket := filepath.Join(d.state, "prerig.sock")
			d.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			}}
		}
	}
	if base == "" {
		base = "http://localhost"
	}
	return base, nil
}

func (d *daemonClient) addToken(request *http.Request) error {
	file := d.tokenFile
	if file == "" {
		file = filepath.Join(d.state, "admin.token")
	}
	token, err := os.ReadFile(file)
	if err != nil && d.tokenFile == "" && errors.Is(err, os.ErrNotExist) {
		return nil // looking may be free
	}
	if err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	text := strings.TrimSpace(string(token))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("reading the token: %s does not contain a token, which is a single word", file)
	}
	if host := request.URL.Hostname(); request.URL.Scheme == "http" && !d.plainHTTP && !server.Loopback(net.JoinHostPort(host, "0")) {
		return fmt.Errorf("calling the daemon: the token would be sent to %s unencrypted; use https:// (admin.tls of the daemon, or a proxy), or --plain-http on a trusted network", host)
	}
	request.Header.Set("Authorization", "Bearer "+text)
	return nil
}

// trustingTransport returns a transport that trusts the authorities of a file, beside those of the system.
func trustingTransport(caFile string) (*http.Transport, error) {
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading CA certificates: %w", err)
	}
	trusted, ok := trust.Authorities(text)
	if !ok {
		return nil, fmt.Errorf("reading CA certificates: %s contains none in PEM format", caFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trusted
	return transport, nil
}

// connectionHint returns what to change where a server cannot be reached.
func connectionHint(err error, url string) string {
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return "; use --server http" + strings.TrimPrefix(url, "https")
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "; use --server https" + strings.TrimPrefix(url, "http")
	case errors.As(err, &unknown):
		return "; specify its CA with --ca-file"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; is the daemon running, and is this its --admin-listen?"
	}
	return ""
}

// innermostError returns the innermost error: the outer ones name a URL that the user did not type.
func innermostError(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// daemonError is what a daemon answers that cannot do what it is asked for.
type daemonError struct {
	code int
	text string
}

func (e daemonError) Error() string { return "calling the daemon: " + e.text }

// getPipelines asks for all, or for some with their runs.
func (d *daemonClient) getPipelines(ctx context.Context, names ...string) ([]server.Pipeline, error) {
	query := url.Values{}
	for _, name := range names {
		query.Add("pipeline", name)
	}
	var out []server.Pipeline
	err := d.callAPI(ctx, http.MethodGet, "/api/v1/pipelines?"+query.Encode(), nil, &out)
	return out, d.unknownNameError(ctx, names, err)
}

// unknownNameError names those that a daemon does not know, and similar ones that it does.
func (d *daemonClient) unknownNameError(ctx context.Context, names []string, err error) error {
	var answer daemonError
	if !errors.As(err, &answer) || answer.code != http.StatusNotFound || len(names) == 0 {
		return err
	}
	all, failed := d.getPipelines(ctx)
	if failed != nil {
		return err
	}
	known := make([]string, 0, len(all))
	for _, p := range all {
		known = append(known, p.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the daemon has no pipeline %s%s", name, suggestNames(name, known))
		}
	}
	return err
}
