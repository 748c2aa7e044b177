// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package system tests the daemon as a whole: with real Git servers, registries and queues, killed, damaged and attacked. Most
// of its tests have few cases unless PRERIG_E2E=full is set, as `make e2e-pipeline` does. With -short only a few run, and with the
// race detector, as in `make test-race`, all that start no daemon as a process of its own.
package system
