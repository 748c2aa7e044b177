// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"net/http"
	"time"
)

// OpenGitHubApp opens a repository at an API of GitHub for an App, with a clock.
func OpenGitHubApp(root, repository string, app App, now func() time.Time) Host {
	at := root + "/repos/" + repository
	a := &api{root: root, at: at, server: "github.example.com", repository: repository, client: http.DefaultClient, now: now}
	return openGitHub(a, Credentials{App: &app})
}
