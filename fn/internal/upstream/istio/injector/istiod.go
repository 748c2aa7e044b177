// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !istio1.18

package main

import (
	"fmt"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/config/mesh/meshwatcher"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/kube/inject"
	"istio.io/istio/pkg/kube/multicluster"
	"istio.io/istio/pkg/log"
)

// What differs between the Istio versions that the command can be built with is in this file, and in one with the same
// functions for each older version, whose build tag make injectors sets.

// silenceLog turns Istio's log off.
func silenceLog() error {
	options := log.DefaultOptions()
	options.SetDefaultOutputLevel(log.OverrideScopeName, log.NoneLevel)
	return log.Configure(options)
}

// environmentOf returns what an istiod with a constant mesh config knows about its mesh.
func environmentOf(m *meshconfig.MeshConfig, proxyConfigs model.ConfigStore) *model.Environment {
	env := &model.Environment{Watcher: meshwatcher.NewTestWatcher(m), ConfigStore: proxyConfigs}
	env.SetPushContext(&model.PushContext{ProxyConfigs: model.GetProxyConfigs(proxyConfigs, m)})
	return env
}

// start makes the webhook answer on the parameters' Mux, with clients of the clusters' nodes and namespaces.
func start(parameters inject.WebhookParameters, i Installation, stop chan struct{}) error {
	clusters := multicluster.NewFakeController()
	parameters.MultiCluster = clusters
	if _, err := inject.NewWebhook(parameters); err != nil {
		return fmt.Errorf("starting Istio's webhook: %w", err)
	}
	client := kube.NewFakeClient(objectsOf(i)...)
	for _, name := range i.Clusters {
		clusters.Add(cluster.ID(name), client, stop)
	}
	client.RunAndWait(stop)
	return nil
}
