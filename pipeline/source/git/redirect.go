// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/prerig/prerig/pipeline/giturl"
)

// checkRedirect keeps a repository on the host that its URL names: whoever runs the server, or stands in for it, must not send this
// process to a third one. What the transport itself has against a redirect, such as one to plain http, comes first.
func checkRedirect(request *http.Request, via []*http.Request) error {
	from, to := via[0].URL, request.URL
	upgrade := from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == ""
	if strings.EqualFold(from.Hostname(), to.Hostname()) && (upgrade || portOf(from) == portOf(to)) {
		return nil
	}
	return fmt.Errorf("the server redirects to %s, another host; if that is right, name it in the pipeline", to.Host)
}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), giturl.DefaultPort(u.Scheme)) }
