// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"time"
)

// AccessBound is how long an answer of the server proves that a remote's credentials may read its repository. A key that was
// revoked reads what the mirror holds for no longer than that.
const AccessBound = time.Minute

// recordProvenAccess records that the server has just revealed the repository's content to these credentials.
func (r *Remote) recordProvenAccess() {
	now := time.Now()
	r.lastAccess.Store(&now)
}

// proveAccess asks the server whether these credentials may read the repository, unless the server has confirmed it
// within AccessBound. A mirror is shared by all who name its URL: its content must not reach a user whom the server
// would reject.
func (r *Remote) proveAccess(ctx context.Context) error {
	if last := r.lastAccess.Load(); last != nil && time.Since(*last) < AccessBound {
		return nil
	}
	if _, err := r.List(ctx); err != nil {
		return fmt.Errorf("proving that what is kept of it may be read: %w", err)
	}
	return nil
}
