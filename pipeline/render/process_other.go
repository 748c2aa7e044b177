// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package render

import "time"

// On systems other than Linux, a renderer is a process of its own that receives only its request, for at most the
// time that the request allows. The system does not restrict it, so it is for sources that its user trusts. Only
// the daemon is for others.

// rendererMaxMemory is what a renderer that is used again is taken to have.
const rendererMaxMemory = 64 << 20

func closeFilesOnExec() {}

// isAlive does not know better: the next render finds out, and starts another.
func (p *rendererProcess) isAlive() bool { return true }

func (p *rendererProcess) lowerPriority() {}

func (p *rendererProcess) killStarted() {}

// setLimits leaves memory and processor time alone; the timeout of the render is kept by the one who waits.
func (p *rendererProcess) setLimits(Limits, bool) error { return nil }

// cpuTime is not known, so that a renderer is used once.
func (p *rendererProcess) cpuTime() (time.Duration, bool) { return 0, false }

func (p *rendererProcess) privateMemoryBytes() int64 { return rendererMaxMemory }
