// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package secret reads credentials by name, for the servers that they are meant for. Errors never contain a value.
package secret
