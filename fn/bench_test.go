// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/prerig/prerig/fn"
)

// list returns a ResourceList of n Deployments, each with a Service, under the built-in policy.
func list(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh}
  spec:
    istio:
      injector: {builtIn: istio}
items:
`)
	for i := range n {
		fmt.Fprintf(&b, `- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: app-%[1]d
    namespace: shop
  spec:
    selector:
      matchLabels: {app: app-%[1]d}
    template:
      metadata:
        labels: {app: app-%[1]d}
      spec:
        containers:
        - name: app
          image: registry.example/app:%[1]d
          ports:
          - containerPort: 8080
          readinessProbe:
            httpGet: {path: /ready, port: 8080}
- apiVersion: v1
  kind: Service
  metadata:
    name: app-%[1]d
    namespace: shop
  spec:
    ports:
    - port: 80
`, i)
	}
	return b.Bytes()
}

// BenchmarkExecute gives the time of the whole function for each Deployment.
func BenchmarkExecute(b *testing.B) {
	const n = 500
	in := list(n)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if err := fn.Execute(b.Context(), bytes.NewReader(in), io.Discard, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/pod")
}
