// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/user"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/config"
)

// isOfOtherUser reports whether a daemon uses a state directory that this user may not read, because it belongs to
// another user, and reports that once. Without a responding daemon, missing permissions are an error: the doctor
// may be run by the daemon's user.
func (l *look) isOfOtherUser(ctx context.Context, dir string, owner uint32, me int) bool {
	if me < 0 || int(owner) == me || !daemonAnswersLocally(ctx, l.config) {
		return false
	}
	l.owner = userName(int(owner))
	l.addWarning(State, dir, fmt.Sprintf("a daemon responds at %s, and the directory belongs to the user %s, while this is %s: files that only %[2]s may read are not checked",
		l.config.Listen, l.owner, userName(me)), "run doctor as that user: sudo -u "+l.owner+" prerig doctor …")
	return true
}

// daemonAnswersLocally reports whether a daemon answers where this one would listen for webhooks.
func daemonAnswersLocally(ctx context.Context, c *config.Config) bool {
	address, scheme := c.Listen, "http"
	if strings.HasPrefix(address, ":") {
		address = "localhost" + address
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if c.TLS.Enabled() {
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // no secret is sent, and only the fact that a server answers is used
	}
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func userName(id int) string {
	if known, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return known.Username
	}
	return strconv.Itoa(id)
}

// severityForOtherUser of an error: what is another user's, and hidden from this one, need not be wrong.
func (l *look) severityForOtherUser(err error) (severity result.Severity, advice string) {
	if l.owner != "" && errors.Is(err, fs.ErrPermission) {
		return result.Warning, "only " + l.owner + " can check this: run doctor as that user"
	}
	return result.Error, ""
}

// addFailureUnlessHidden is report's, but for what is hidden from this user.
func (l *look) addFailureUnlessHidden(area Area, where string, err error, advice string) {
	if severity, other := l.severityForOtherUser(err); severity == result.Warning {
		l.addWarning(area, where, oneLine(err), other)
		return
	}
	l.report.addFailure(area, where, err, advice)
}
