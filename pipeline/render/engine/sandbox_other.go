// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

import "github.com/prerig/prerig/pipeline/render"

// isolateProcess does not isolate the process on systems other than Linux.
func isolateProcess(isolationLayers) render.Isolation { return render.Isolation{} }
