// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine is the renderer: it builds with kustomize, kpt and Helm, injects, and checks what an API server
// would reject. It is linked only into the program prerig-render because it changes the process: it disables
// network and time zones, and replaces state that kustomize keeps in globals.
package engine
