// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// The resources that are read and written.
var (
	pipelines = schema.GroupVersionResource{Group: "prerig.dev", Version: "v1alpha1", Resource: "renderpipelines"}
	policies  = schema.GroupVersionResource{Group: "prerig.dev", Version: "v1alpha1", Resource: "injectionpolicies"}
	secrets   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	events    = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// Client speaks with an API server. It is safe for concurrent use.
type Client struct {
	dynamic dynamic.Interface
	host    string
}

// requestTimeout bounds a request that is no watch.
const requestTimeout = 30 * time.Second

// Connect returns a client for the cluster of a kubeconfig, or for the one that this process runs in if the name is
// empty. It sends no requests yet.
func Connect(kubeconfig, version string) (*Client, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "prerig/" + version
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(budget.APIServer)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Client{dynamic: client, host: config.Host}, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("connecting to the cluster that this runs in: %w; outside of one, kubernetes.kubeconfig names a file", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster of %s: %w", kubeconfig, err)
	}
	return config, nil
}

// Dynamic returns the client for objects of any kind.
func (c *Client) Dynamic() dynamic.Interface { return c.dynamic }

// String names the cluster for people.
func (c *Client) String() string { return "cluster " + c.host }
