// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"
)

// cloudSQLCase is a workload, and AuthProxyWorkload objects of its namespace.
type cloudSQLCase struct {
	// proxies are the specs of the objects in YAML, each without a workloadSelector selecting the workload by its kind; the first is
	// named db, and the others db2, db3, ….
	proxies []string
	// name is that of the first object, where it is not db.
	name string
	// namespace is that of the objects, where it is not the workload's.
	namespace string
	// kind of the workload; empty for Deployment.
	kind string
	// spec is the pod's in YAML; empty for one container.
	spec string
	// containers is true where the proxies are containers beside the app's and no native sidecars.
	containers bool
	// difference is the row of the docs' table that says why the pod is not the operator's; older is that for an older operator.
	difference, older string
}

func (c cloudSQLCase) workloadKind() string {
	if c.kind == "" {
		return "Deployment"
	}
	return c.kind
}

// objects are the AuthProxyWorkloads.
func (c cloudSQLCase) objects(t *testing.T) []any {
	t.Helper()
	var out []any
	for i, text := range c.proxies {
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		if spec["workloadSelector"] == nil {
			spec["workloadSelector"] = map[string]any{"kind": c.workloadKind()}
		}
		name := "db"
		switch {
		case i > 0:
			name = fmt.Sprintf("db%d", i+1)
		case c.name != "":
			name = c.name
		}
		namespace := c.namespace
		if namespace == "" {
			namespace = "shop"
		}
		out = append(out, map[string]any{"apiVersion": "cloudsql.cloud.google.com/v1", "kind": "AuthProxyWorkload",
			"metadata": map[string]any{"name": name, "namespace": namespace, "generation": i + 3}, "spec": spec})
	}
	return out
}

// template is the pod as the workload's manifest has it.
func (c cloudSQLCase) template(t *testing.T) map[string]any {
	t.Helper()
	text := c.spec
	if text == "" {
		text = "containers: [{name: web, image: example.com/orders:7}]"
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "orders", "pod": "yes"}, "annotations": map[string]any{"own": "x"}}, "spec": spec}
}

const (
	cloudSQLApp = "{containers: [{name: web, ports: [{containerPort: 5000}, {containerPort: 9801}]}, {name: aux, env: [{name: DB_HOST, value: other}, {name: DB_PORT, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}], " +
		"initContainers: [{name: migrate, env: [{name: A, value: b}], ports: [{containerPort: 5001}, {containerPort: 9091}]}]}"
	cloudSQLOne    = "instances: [{connectionString: 'p:r:orders'}]"
	cloudSQLSocket = "instances: [{connectionString: 'P:r:orders', unixSocketPath: /cloudsql/orders, unixSocketPathEnvName: DB_SOCKET}]"
)

// cloudSQLCases are compared with the operator.
var cloudSQLCases = map[string]cloudSQLCase{
	"plain":            {proxies: []string{cloudSQLOne}},
	"containers":       {proxies: []string{cloudSQLOne}, containers: true},
	"no object":        {},
	"app":              {proxies: []string{cloudSQLOne}, spec: cloudSQLApp},
	"app, containers":  {proxies: []string{cloudSQLOne}, spec: cloudSQLApp, containers: true},
	"StatefulSet":      {proxies: []string{cloudSQLOne}, kind: "StatefulSet"},
	"Job":              {proxies: []string{cloudSQLOne}, kind: "Job"},
	"DaemonSet":        {proxies: []string{cloudSQLOne}, kind: "DaemonSet"},
	"CronJob":          {proxies: []string{cloudSQLOne}, kind: "CronJob"},
	"Pod":              {proxies: []string{cloudSQLOne}, kind: "Pod"},
	"other namespace":  {proxies: []string{cloudSQLOne}, namespace: "other"},
	"by name":          {proxies: []string{"{workloadSelector: {kind: Deployment, name: orders}, " + cloudSQLOne + "}"}},
	"by another name":  {proxies: []string{"{workloadSelector: {kind: Deployment, name: other}, " + cloudSQLOne + "}"}},
	"by another kind":  {proxies: []string{"{workloadSelector: {kind: StatefulSet}, " + cloudSQLOne + "}"}},
	"by any kind":      {proxies: []string{"{workloadSelector: {kind: ''}, " + cloudSQLOne + "}"}},
	"by labels":        {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchLabels: {tier: back}}}, " + cloudSQLOne + "}"}},
	"by other labels":  {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchLabels: {tier: front}}}, " + cloudSQLOne + "}"}},
	"by pod's labels":  {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchLabels: {pod: 'yes'}}}, " + cloudSQLOne + "}"}},
	"by the pod":       {proxies: []string{"{workloadSelector: {kind: Pod, selector: {matchLabels: {pod: 'yes'}}}, " + cloudSQLOne + "}"}},
	"by another pod":   {proxies: []string{"{workloadSelector: {kind: Pod, selector: {matchLabels: {pod: 'no'}}}, " + cloudSQLOne + "}"}},
	"by ReplicaSet":    {proxies: []string{"{workloadSelector: {kind: ReplicaSet, selector: {matchLabels: {pod: 'yes'}}}, " + cloudSQLOne + "}"}},
	"by In":            {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchExpressions: [{key: tier, operator: In, values: [a, back]}, {key: x, operator: DoesNotExist}]}}, " + cloudSQLOne + "}"}},
	"by NotIn":         {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}}, " + cloudSQLOne + "}"}},
	"by NotIn, absent": {proxies: []string{"{workloadSelector: {kind: Deployment, selector: {matchExpressions: [{key: x, operator: NotIn, values: [back]}, {key: tier, operator: Exists}]}}, " + cloudSQLOne + "}"}},

	"variables":            {proxies: []string{"instances: [{connectionString: 'p:r:orders', hostEnvName: DB_HOST, portEnvName: DB_PORT}]"}, spec: cloudSQLApp},
	"port":                 {proxies: []string{"instances: [{connectionString: 'p:r:orders', port: 5432, portEnvName: DB_PORT}]"}},
	"port in use":          {proxies: []string{"instances: [{connectionString: 'p:r:orders', port: 5000}]"}, spec: cloudSQLApp},
	"instances":            {proxies: []string{"instances: [{connectionString: 'p:r:a', portEnvName: A}, {connectionString: 'p:r:b', port: 5001}, {connectionString: 'p:r:c', portEnvName: C}]"}},
	"one instance twice":   {proxies: []string{"instances: [{connectionString: 'p:r:a', portEnvName: A}, {connectionString: 'p:r:a', portEnvName: B}]"}},
	"two ports of one":     {proxies: []string{"instances: [{connectionString: 'p:r:a', port: 1}, {connectionString: 'p:r:a', port: 2}]"}},
	"one port of two":      {proxies: []string{"instances: [{connectionString: 'p:r:a', port: 1}, {connectionString: 'p:r:b', port: 1}]"}},
	"one variable of two":  {proxies: []string{"instances: [{connectionString: 'p:r:a', portEnvName: A}, {connectionString: 'p:r:b', portEnvName: A}]"}},
	"one host of two":      {proxies: []string{"instances: [{connectionString: 'p:r:a', hostEnvName: A}, {connectionString: 'p:r:b', hostEnvName: A}]"}},
	"connections":          {proxies: []string{"instances: [{connectionString: 'p:r:a', autoIAMAuthN: true, privateIP: false, psc: true}, {connectionString: 'p:r:b', autoIAMAuthN: false, privateIP: true, psc: false}]"}},
	"socket":               {proxies: []string{cloudSQLSocket}, spec: cloudSQLApp},
	"socket, containers":   {proxies: []string{cloudSQLSocket}, spec: cloudSQLApp, containers: true},
	"sockets of a place":   {proxies: []string{"instances: [{connectionString: 'p:r:a', unixSocketPath: /cloudsql/a}, {connectionString: 'p:r:b', unixSocketPath: /cloudsql/b, unixSocketPathEnvName: B}]"}},
	"sockets of two":       {proxies: []string{"instances: [{connectionString: 'p:r:a', unixSocketPath: /a/s}, {connectionString: 'p:r:b', unixSocketPath: /b/s}]"}},
	"sockets of one":       {proxies: []string{"instances: [{connectionString: 'p:r:a', unixSocketPath: /a/s}, {connectionString: 'p:r:a', unixSocketPath: /b/s}]"}},
	"long names":           {name: "a-name-of-an-object-that-is-as-long-as-it-may-be-with-63-letter", proxies: []string{"instances: [{connectionString: 'a-long-project:europe-west1:a-long-instance', unixSocketPath: /cloudsql/a}]"}},
	"name of 58":           {name: "a234567890b234567890c234567890d234567890e234567890f23", proxies: []string{cloudSQLOne}},
	"name of 59":           {name: "a234567890b234567890c234567890d234567890e234567890f234", proxies: []string{cloudSQLOne}},
	"image":                {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {image: 'example.com/proxy:7', quiet: true, refreshStrategy: lazy}}"}},
	"resources":            {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}}}"}},
	"security context":     {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {securityContext: {runAsUser: 7}}}"}, older: "with 1.6.0: `securityContext` of an object"},
	"telemetry":            {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {telemetry: {quotaProject: q, prometheusNamespace: shop, telemetryProject: p, telemetryPrefix: x, telemetrySampleRate: 500, httpPort: 9092, disableTraces: true, disableMetrics: true}}}"}},
	"Prometheus":           {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {telemetry: {prometheus: true, disableTraces: false}}}"}},
	"admin server":         {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {adminServer: {port: 7777, enableAPIs: [Debug, QuitQuitQuit]}}}"}},
	"admin port in use":    {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {adminServer: {enableAPIs: [QuitQuitQuit]}}}"}, spec: cloudSQLApp},
	"impersonation":        {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {authentication: {impersonationChain: [a@x, b@x]}}}"}},
	"limits":               {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {maxConnections: 9, maxSigtermDelay: 10, minSigtermDelay: 5, sqlAdminAPIEndpoint: 'https://example.com'}}"}},
	"limits of 0":          {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {maxConnections: 0, maxSigtermDelay: 0, rolloutStrategy: None}}"}},
	"own container":        {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {container: {name: x, image: own, env: [{name: A, value: b}], volumeMounts: [{name: v, mountPath: /v}]}}}"}, spec: "{containers: [{name: web}], volumes: [{name: v, emptyDir: {}}]}", containers: true},
	"own native container": {proxies: []string{"{" + cloudSQLOne + ", authProxyContainer: {container: {image: own}}}"}},
	"two objects": {proxies: []string{"{instances: [{connectionString: 'p:r:a', portEnvName: A}], authProxyContainer: {telemetry: {httpPort: 9000}}}", "instances: [{connectionString: 'p:r:b', portEnvName: B}]"},
		difference: "several objects for one pod"},
	"two objects, containers":     {containers: true, proxies: []string{"instances: [{connectionString: 'p:r:a', portEnvName: A}]", "instances: [{connectionString: 'p:r:b', unixSocketPath: /s/b}]"}, difference: "several objects for one pod"},
	"one variable of two objects": {proxies: []string{"instances: [{connectionString: 'p:r:a', portEnvName: A}]", "instances: [{connectionString: 'p:r:b', portEnvName: A}]"}},
}
