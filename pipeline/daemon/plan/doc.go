// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which pipelines run: after an event, after a change of the pipelines themselves, and from time to
// time. It looks at each source once, compares it with what the last render of each pipeline has read, and asks for a run
// of those only that would see anything else. It renders and publishes nothing.
package plan
