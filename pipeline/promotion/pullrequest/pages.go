// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
)

// maxPages bounds how many pages of a list are read, maxListed the bytes of all pages together.
const maxPages, maxListed = 50, 64 << 20

// pages reads the pages of one list. What is read of a list is kept, so that the sum of its pages is bounded, too.
type pages struct {
	of *api
	// number is that of the current page, from 1.
	number int
	left   int64
}

func (a *api) newPages() *pages { return &pages{of: a, left: maxListed} }

// next begins another page, and reports whether the list may have one.
func (p *pages) next() bool {
	p.number++
	return p.number <= maxPages
}

// read reads a page below the repository.
func (p *pages) read(ctx context.Context, doing, below string, out any) (http.Header, error) {
	return p.readAt(ctx, doing, p.of.at+below, out)
}

// readAt reads a page at a URL of the host.
func (p *pages) readAt(ctx context.Context, doing, to string, out any) (http.Header, error) {
	return p.of.retryCall(ctx, doing, http.MethodGet, to, nil, out, &p.left)
}

// checkEnd returns an error where the list has more pages than are read: what refuses a merge may be on those.
func (p *pages) checkEnd(doing string) error {
	if p.number <= maxPages {
		return nil
	}
	return &Error{
		Server: p.of.server, Repository: p.of.repository, Doing: doing,
		Err: fmt.Errorf("the list has more than %d pages", maxPages),
	}
}
