// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// checkRedirect restricts a repository to the host that its URL names, and to what the pipeline and its credentials
// may read on that host: the operator of the server, or an impostor, must not send this process to a third one. The
// transport's own objections to a redirect, such as one to plain http, come first.
func (r *Remote) checkRedirect(request *http.Request, via []*http.Request) error {
	from, to := via[0].URL, request.URL
	upgrade := from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == ""
	if !strings.EqualFold(from.Hostname(), to.Hostname()) || !upgrade && portOf(from) != portOf(to) {
		return fmt.Errorf("the server redirects to %s, another host; if that is right, name it in the pipeline", to.Host)
	}
	if repositoryPath(from) == repositoryPath(to) {
		return nil
	}
	repository := &url.URL{Scheme: to.Scheme, Host: to.Host, Path: repositoryPath(to)}
	if err := egress.CheckURL(request.Context(), repository); err != nil {
		return err
	}
	if r.isFor != nil && r.isFor(request.Context(), repository.String()) != nil {
		return errors.New("the server redirects to another repository, which the credentials are not for; " +
			"if that is right, name it in the pipeline")
	}
	return nil
}

// repositoryPath is the path of the repository that a URL of Git's protocol over http belongs to (gitprotocol-http).
func repositoryPath(u *url.URL) string {
	path := u.Path
	for _, ending := range []string{"/info/refs", "/git-upload-pack", "/git-receive-pack"} {
		path = strings.TrimSuffix(path, ending)
	}
	return path
}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), giturl.DefaultPort(u.Scheme)) }
