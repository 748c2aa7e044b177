// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"os/exec"
	"sync"
)

// ConfineArgument is the argument with which prerig-render confines another program, whose path and arguments follow, as it confines
// itself.
const ConfineArgument = "confine"

// launching is held while a program is started. Until its exec, a child in a new user namespace waits for a pipe from us, and has
// everything open that we have, the ends of other such pipes too: os/exec lets starts overlap. If we are killed then, two children wait
// for each other's end for ever, and keep our sockets and locks.
var launching sync.Mutex

// Launch starts a command with Attributes, one at a time.
func Launch(command *exec.Cmd) error {
	launching.Lock()
	defer launching.Unlock()
	return command.Start()
}
