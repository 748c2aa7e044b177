// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine is the renderer: it builds with kustomize, kpt and Helm, injects, and checks what an API server would refuse. It is
// linked into the program prerig-render only, as it changes the process: there is no network and no time zone, and what kustomize keeps
// in globals is replaced.
package engine
