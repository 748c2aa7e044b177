// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// versionTimeout bounds the question for the version, where the kubeconfig sets no timeout.
const versionTimeout = 32 * time.Second

// Version returns the version of the API server, such as v1.34.2. A discovery client asks the same, and links all of Kubernetes'
// types for it.
func Version(ctx context.Context, config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	if config.Timeout == 0 {
		config.Timeout = versionTimeout
	}
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"}) // answers are errors of this version
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return "", fmt.Errorf("reaching the cluster: %w", err)
	}
	body, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("asking the cluster for its version: %w", err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("asking the cluster for its version: unable to parse the server version: %w", err)
	}
	return info.GitVersion, nil
}
