// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

func (s *giteaShop) open(repository, token string) pullrequest.Host {
	s.t.Helper()
	return open(s.t, pullrequest.Options{
		Provider: giturl.Gitea, Repository: s.URL + "/" + repository + ".git", Credentials: pullrequest.Credentials{Token: token},
	})
}
