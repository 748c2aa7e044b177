// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// triple is a typical workload with the objects that usually accompany it. %d is its number.
const triple = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-%[1]d
  namespace: shop
  labels:
    app.kubernetes.io/name: app-%[1]d
    app.kubernetes.io/part-of: shop
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: app-%[1]d
  template:
    metadata:
      labels:
        app.kubernetes.io/name: app-%[1]d
        app.kubernetes.io/part-of: shop
        app.kubernetes.io/version: 2.14.%[1]d
    spec:
      serviceAccountName: app-%[1]d
      containers:
      - name: app
        image: registry.example.com/shop/app-%[1]d:2.14.%[1]d
        args:
        - --listen=:8080
        - --config=/etc/app/config.yaml
        ports:
        - name: http
          containerPort: 8080
        - name: metrics
          containerPort: 9090
        env:
        - name: LOG_LEVEL
          value: info
        - name: DATABASE_URL
          valueFrom:
            secretKeyRef:
              name: app-%[1]d-database
              key: url
        readinessProbe:
          httpGet:
            path: /ready
            port: http
          periodSeconds: 5
        livenessProbe:
          httpGet:
            path: /live
            port: http
        resources:
          requests:
            cpu: 250m
            memory: 256Mi
          limits:
            memory: 512Mi
        volumeMounts:
        - name: config
          mountPath: /etc/app
      volumes:
      - name: config
        configMap:
          name: app-%[1]d
---
apiVersion: v1
kind: Service
metadata:
  name: app-%[1]d
  namespace: shop
spec:
  selector:
    app.kubernetes.io/name: app-%[1]d
  ports:
  - name: http
    port: 80
    targetPort: http
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-%[1]d
  namespace: shop
data:
  config.yaml: |
    name: app-%[1]d
    cache:
      size: 128
      ttl: 5m
    features: [search, basket, checkout]
`

// policy is a functionConfig that injects the built-in sidecar. A function without an opinion ignores it.
const policy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
spec:
  istio:
    injector:
      builtIn: istio
`

// policyWith returns the policy with annotations.
func policyWith(annotations string) string {
	return strings.Replace(policy, "  name: mesh\n", "  name: mesh\n  annotations:\n"+annotations, 1)
}

// plainTripleStream returns n triples as a plain YAML stream.
func plainTripleStream(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		if i > 0 {
			b.WriteString("---\n")
		}
		fmt.Fprintf(&b, triple, i)
	}
	return b.Bytes()
}

// resourceList returns objects of a plain stream as a ResourceList with the policy as its functionConfig.
func resourceList(objects []byte) []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n")
	for line := range strings.Lines(policy) {
		b.WriteString("  " + line)
	}
	b.WriteString("items:\n")
	for doc := range strings.SplitSeq(string(objects), "---\n") {
		indent := "- "
		for line := range strings.Lines(doc) {
			b.WriteString(indent + line)
			indent = "  "
		}
	}
	return b.Bytes()
}
