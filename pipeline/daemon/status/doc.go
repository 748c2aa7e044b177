// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package status keeps what is known of each pipeline: its conditions, its last runs with their differences, what the last
// render depended on, and what people asked for. It is stored in the queue's state, so that all processes see the same. It
// never holds a secret.
package status
