// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import "time"

// SetPatience gives a server of a test less time to answer.
func (r *Remote) SetPatience(d time.Duration) { r.ssh.patience = d }
