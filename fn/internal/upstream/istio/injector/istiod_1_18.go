// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build istio1.18

package main

import (
	"fmt"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/kube/inject"
	"istio.io/pkg/log"
)

// silenceLog turns Istio's log off.
func silenceLog() error {
	options := log.DefaultOptions()
	options.SetOutputLevel(log.OverrideScopeName, log.NoneLevel)
	return log.Configure(options)
}

// environmentOf returns what an istiod with a constant mesh config knows about its mesh.
func environmentOf(m *meshconfig.MeshConfig, proxyConfigs model.ConfigStore) *model.Environment {
	return &model.Environment{Watcher: mesh.NewFixedWatcher(m), ConfigStore: proxyConfigs,
		PushContext: &model.PushContext{ProxyConfigs: model.GetProxyConfigs(proxyConfigs, m)}}
}

// start makes the webhook answer on the parameters' Mux. It reads neither nodes nor namespaces.
func start(parameters inject.WebhookParameters, _ Installation, _ chan struct{}) error {
	if _, err := inject.NewWebhook(parameters); err != nil {
		return fmt.Errorf("starting Istio's webhook: %w", err)
	}
	return nil
}
