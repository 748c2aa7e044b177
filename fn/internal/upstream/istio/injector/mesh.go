// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/mesh/meshwatcher"
)

// watcherOf gives a mesh config that does not change. This is what differs between the Istio versions that the command
// can be built with.
func watcherOf(m *meshconfig.MeshConfig) model.Watcher { return meshwatcher.NewTestWatcher(m) }
