// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import "time"

// SetPatience gives a server of a test less time to answer.
func (r *Remote) SetPatience(d time.Duration) { r.ssh.patience = d }

// AgeAccess makes the server's last answer older than it counts.
func (r *Remote) AgeAccess() {
	old := time.Now().Add(-AccessBound)
	r.lastAccess.Store(&old)
}
