// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// typicalWorkload is one of many alike. %[1]d is its number.
const typicalWorkload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: front-%[1]d
  namespace: team-%[2]d
  annotations:
    config.kubernetes.io/index: '%[1]d'
    config.kubernetes.io/path: 'front/%[1]d.yaml'
  labels:
    app.kubernetes.io/name: front-%[1]d
spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: front-%[1]d
  template:
    metadata:
      labels:
        app.kubernetes.io/name: front-%[1]d
        app.kubernetes.io/version: 2.14.%[1]d
      annotations:
        checksum/config: f2%[1]dab
    spec:
      serviceAccountName: front-%[1]d
      containers:
      - name: main
        image: registry.example.com/shop/front-%[1]d:2.14.%[1]d
        args:
        - --listen=:8080
        - --name=front-%[1]d
        ports:
        - name: http
          containerPort: 8080
        env:
        - name: LOG_LEVEL
          value: "level%[1]d"
        - name: URL
          valueFrom:
            secretKeyRef:
              name: front-%[1]d-database
              key: url
        readinessProbe:
          httpGet:
            path: /ready
            port: http
        resources:
          requests:
            cpu: 25%[1]dm
            memory: 256Mi
        volumeMounts:
        - name: config
          mountPath: /etc/app
      volumes:
      - name: config
        configMap:
          name: front-%[1]d
`

func builtInPolicy(t testing.TB) *v1alpha1.InjectionPolicy {
	t.Helper()
	p, err := v1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func itemsOf(t testing.TB, text string) []Item {
	t.Helper()
	file, err := manifest.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var items []Item
	for i, d := range file.Docs {
		items = append(items, Item{Doc: d, Index: i})
	}
	return items
}

// TestWorkloadsOfAShapeAreInjectedOnce counts the workloads that take the full path.
func TestWorkloadsOfAShapeAreInjectedOnce(t *testing.T) {
	var docs []string
	for i := range 200 {
		docs = append(docs, fmt.Sprintf(typicalWorkload, i+1, i%7))
	}
	in, err := New([]*v1alpha1.InjectionPolicy{builtInPolicy(t)}, WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	in.checksShapes = false
	report, err := in.Run(context.Background(), itemsOf(t, strings.Join(docs, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, item := range report.Items {
		if item.Doc.IsFilled() {
			used++
		}
	}
	if used < 180 {
		t.Errorf("%d of %d workloads took the short way; shapes: %d", used, len(docs), len(in.shapes.shapes))
		for k, v := range in.shapes.shapes {
			t.Logf("%v %q", v != nil, k)
		}
	}
}
