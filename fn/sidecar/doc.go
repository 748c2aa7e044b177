// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package sidecar injects sidecars that are not Istio's into pods, as a policy's spec.sidecars describe them: it
// decides which pods get one, reads its parameters from annotations, renders its templates, merges their output
// into the pod, places the containers, changes the app's own containers, renders further objects, and keeps a
// record in the pod that reverts all of it.
//
// It works on pods as maps and never changes its arguments. It reads no file, clock or environment, and templates
// cannot either: functions that could are rejected by name. It is independent of documents and does not order
// sidecars among each other or around Istio; package fn does.
package sidecar
