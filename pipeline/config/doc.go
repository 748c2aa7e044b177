// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads how the daemon is set up: a file, PRERIG_ environment variables, and flags, in this order of rising
// precedence. It is strict: a key that does not exist is an error that names it. Secrets are never values of the
// configuration; they are files that it names.
package config
