// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import "time"

// Waiting are the processes that wait to be used again.
func (p *Pool) Waiting() (pids []int) {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	for _, one := range p.sessions.idle {
		pids = append(pids, one.worker.command.Process.Pid)
	}
	return pids
}

// LetAsk bounds the questions of a render, in bytes.
func (p *Pool) LetAsk(bytes int) { p.asking = bytes }

// LetWait has processes wait for as long as a test needs, however slow the machine is and however much the race detector takes.
func (p *Pool) LetWait() {
	p.sessions.patience, p.sessions.room, p.sessions.stepBack = time.Hour, 1<<40, time.Hour
}
