// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// daprCase is a pod, and settings of the injector.
type daprCase struct {
	// annotations are dapr.io/… without that prefix. Where there is no enabled among them it is "true", and app-id is orders.
	annotations map[string]string
	// spec is the pod's in YAML; empty for one container.
	spec string
	// values are those of the policy that are not as Dapr's chart has them.
	values map[string]any
	// difference is the row of the docs' table that says why the pod is not Dapr's.
	difference string
}

// object is the pod as a manifest.
func (c daprCase) object(t *testing.T) map[string]any {
	t.Helper()
	annotations := map[string]any{"dapr.io/enabled": "true", "dapr.io/app-id": "orders"}
	for name, value := range c.annotations {
		annotations["dapr.io/"+name] = value
	}
	text := c.spec
	if text == "" {
		text = "containers: [{name: web, image: example.com/orders:7}]"
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "orders-0", "namespace": "shop", "annotations": annotations, "labels": map[string]any{"app": "orders"}},
		"spec":     spec,
	}
}

// allValues are the policy's own values with those of Dapr's chart in place of stricter ones, and the case's.
func (c daprCase) allValues(t *testing.T) map[string]any {
	t.Helper()
	return merge(merge(builtInValues(t, "dapr"), map[string]any{
		"trustAnchors": "-----BEGIN CERTIFICATE-----\nMIIBizCCATGgAwIBAgIBATAKBggqhkjOPQQDAjAl\n-----END CERTIFICATE-----\n",
		// What the policy does better.
		"dropAllCapabilities": false, "startupProbe": false,
	}), c.values)
}

// daprCases are compared with Dapr's injector.
var daprCases = map[string]daprCase{
	"plain":            {},
	"enabled False":    {annotations: map[string]string{"enabled": "False"}},
	"enabled TRUE":     {annotations: map[string]string{"enabled": "TRUE"}},
	"enabled True":     {annotations: map[string]string{"enabled": "True"}},
	"enabled yes":      {annotations: map[string]string{"enabled": "yes"}},
	"enabled in parts": {annotations: map[string]string{"enabled": "tRue"}, difference: "`dapr.io/enabled: tRue`"},

	"app":                     {annotations: map[string]string{"app-port": "8080", "app-protocol": "grpc", "config": "tracing", "app-channel-address": "10.0.0.1"}},
	"port 0":                  {annotations: map[string]string{"app-port": "0"}},
	"protocol in capitals":    {annotations: map[string]string{"app-protocol": "HTTP"}},
	"protocol unknown":        {annotations: map[string]string{"app-protocol": "smtp"}, difference: "words that daprd does not know"},
	"ssl http":                {annotations: map[string]string{"app-ssl": "true"}},
	"ssl grpc":                {annotations: map[string]string{"app-ssl": "true", "app-protocol": "grpc"}},
	"ssl h2c":                 {annotations: map[string]string{"app-ssl": "true", "app-protocol": "h2c"}},
	"bool word":               {annotations: map[string]string{"log-as-json": "yes"}, difference: "`yes`, `y` and `on` for true"},
	"number that is none":     {annotations: map[string]string{"app-port": "http"}, difference: "numbers and quantities that are none"},
	"quantity that is none":   {annotations: map[string]string{"sidecar-cpu-limit": "much"}, difference: "numbers and quantities that are none"},
	"app id of the pod":       {annotations: map[string]string{"app-id": ""}, spec: "containers: [{name: web}]"},
	"app id not allowed":      {annotations: map[string]string{"app-id": "Orders"}},
	"app id of 58":            {annotations: map[string]string{"app-id": "a234567890b234567890c234567890d234567890e234567890f2345678"}},
	"app id of 59":            {annotations: map[string]string{"app-id": "a234567890b234567890c234567890d234567890e234567890f23456789"}},
	"own daprd":               {spec: "containers: [{name: web}, {name: daprd, image: own}]", difference: "a container `daprd` of the pod's own"},
	"own native daprd":        {spec: "{containers: [{name: web}], initContainers: [{name: daprd, image: own, restartPolicy: Always}]}", difference: "a container `daprd` of the pod's own"},
	"image":                   {annotations: map[string]string{"sidecar-image": "example.com/daprd:7", "sidecar-seccomp-profile-type": "RuntimeDefault"}},
	"pluggable components":    {annotations: map[string]string{"pluggable-components": "store"}, spec: "containers: [{name: web}, {name: store}]", difference: "pluggable components"},
	"log level":               {annotations: map[string]string{"log-level": "debug", "log-as-json": "true", "enable-api-logging": "true"}},
	"log level fatal":         {annotations: map[string]string{"log-level": "fatal", "enable-api-logging": "false", "enable-profiling": "true"}},
	"no log level":            {annotations: map[string]string{"log-level": ""}, difference: "words that daprd does not know"},
	"concurrency":             {annotations: map[string]string{"app-max-concurrency": "3", "graceful-shutdown-seconds": "10", "block-shutdown-duration": "30s"}},
	"concurrency 0":           {annotations: map[string]string{"app-max-concurrency": "0"}},
	"ports":                   {annotations: map[string]string{"grpc-port": "50011", "internal-grpc-port": "50012", "metrics-port": "9099", "sidecar-listen-addresses": "0.0.0.0"}},
	"no metrics":              {annotations: map[string]string{"enable-metrics": "false"}},
	"sizes":                   {annotations: map[string]string{"max-body-size": "8Mi", "read-buffer-size": "16Ki", "http-max-request-size": "10", "http-read-buffer-size": "20"}},
	"tokens":                  {annotations: map[string]string{"api-token-secret": "api", "app-token-secret": "app"}},
	"no secret store":         {annotations: map[string]string{"disable-builtin-k8s-secret-store": "true"}},
	"app health":              {annotations: map[string]string{"enable-app-health-check": "true"}},
	"app health, own":         {annotations: map[string]string{"enable-app-health-check": "true", "app-health-check-path": "/up", "app-health-probe-interval": "7", "app-health-probe-timeout": "800", "app-health-threshold": "9"}},
	"further":                 {annotations: map[string]string{"app-binding-options-timeout": "5s", "actors-disseminate-timeout": "7s", "sentry-request-jwt-audiences": "a,b", "disable-init-endpoints": "metadata", "sidecar-svc-annotations": "a=b"}},
	"resources":               {annotations: map[string]string{"sidecar-cpu-request": "0.1", "sidecar-cpu-limit": "300m", "sidecar-memory-request": "250Mi", "sidecar-memory-limit": "1Gi"}},
	"memory limit":            {annotations: map[string]string{"sidecar-memory-limit": "1Gi"}},
	"readiness":               {annotations: map[string]string{"sidecar-readiness-probe-delay-seconds": "4", "sidecar-readiness-probe-timeout-seconds": "5", "sidecar-readiness-probe-period-seconds": "6", "sidecar-readiness-probe-threshold": "7"}},
	"liveness":                {annotations: map[string]string{"sidecar-liveness-probe-delay-seconds": "4", "sidecar-liveness-probe-timeout-seconds": "5", "sidecar-liveness-probe-period-seconds": "6", "sidecar-liveness-probe-threshold": "7"}},
	"mounts":                  {annotations: map[string]string{"volume-mounts": "certs:/certs, absent:/x,tmp:/tmp, wrong", "volume-mounts-rw": "tmp:/var/tmp"}, spec: daprVolumes},
	"socket":                  {annotations: map[string]string{"unix-domain-socket-path": "/run/dapr"}, spec: daprVolumes},
	"socket at an own mount":  {annotations: map[string]string{"unix-domain-socket-path": "/certs"}, spec: daprVolumes},
	"volume of the same name": {spec: "{containers: [{name: web}], volumes: [{name: dapr-identity-token, emptyDir: {}}]}", difference: "a volume with the name of one of Dapr's"},
	"env":                     {annotations: map[string]string{"env": "A=1, B=x,y=z=2,C=a b,,D="}},
	"env from secrets":        {annotations: map[string]string{"env": "A=1", "env-from-secret": "B=store:key,C=name,D=a:b:c"}},
	"env of Windows":          {annotations: map[string]string{"env": "SSL_CERT_DIR=C:\\certs"}, values: map[string]any{"runAsUser": int64(1000)}},
	"own variables":           {spec: "containers: [{name: web, env: [{name: DAPR_HTTP_PORT, value: '1'}, {name: LOG, value: x}]}, {name: all, env: [{name: DAPR_HTTP_PORT}, {name: DAPR_GRPC_PORT}, {name: APP_PROTOCOL}]}]"},
	"init containers":         {spec: "{initContainers: [{name: migrate}], containers: [{name: web}]}"},
	"native":                  {annotations: map[string]string{"enable-native-sidecar": "on"}, spec: "{initContainers: [{name: migrate}], containers: [{name: web}]}"},
	"native by setting":       {values: map[string]any{"native": true}},
	"not native":              {annotations: map[string]string{"enable-native-sidecar": "false"}, values: map[string]any{"native": true}},
	"debug":                   {annotations: map[string]string{"enable-debug": "true", "debug-port": "40001"}},
	"toleration":              {spec: "{containers: [{name: web}], tolerations: [{key: aws, effect: NoSchedule}]}"},
	"toleration, debug":       {annotations: map[string]string{"enable-debug": "true"}, spec: "{containers: [{name: web}], tolerations: [{key: aws, effect: NoSchedule}]}"},
	"other toleration":        {spec: "{containers: [{name: web}], tolerations: [{key: aws, operator: Exists, effect: NoSchedule}]}"},
	"placement":               {annotations: map[string]string{"placement-host-address": "placement.example.com:50005"}},
	"no placement":            {annotations: map[string]string{"placement-host-address": "''"}},
	"scheduler":               {annotations: map[string]string{"scheduler-host-address": " 'scheduler.example.com:50006' "}},
	"no scheduler":            {annotations: map[string]string{"scheduler-host-address": ""}},
	"settings": {values: map[string]any{"namespace": "mesh", "clusterDomain": "example.org", "trustDomain": "acme", "mtls": false, "imagePullPolicy": "Always",
		"placementAddress": "none", "schedulerAddress": "none", "runAsUser": int64(1000), "runAsGroup": int64(2000), "dropAllCapabilities": true, "enableK8sDownwardAPIs": true}},
	"settings of a root user": {values: map[string]any{"runAsNonRoot": false, "readOnlyRootFilesystem": false}},
}

// daprVolumes has volumes, one of them mounted.
const daprVolumes = `
containers:
- {name: web, volumeMounts: [{name: certs, mountPath: /certs}]}
- {name: cache}
volumes:
- {name: certs, secret: {secretName: certs}}
- {name: tmp, emptyDir: {}}
`
