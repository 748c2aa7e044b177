// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package preview renders pipelines without a daemon and without publishing anything: for looking at a result, for comparing
// it with what is published, and for finding out which pipelines a range of commits touches. It takes the same steps as the
// daemon.
package preview
