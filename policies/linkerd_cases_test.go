// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// linkerdCase is a pod of a Deployment, its namespace's annotations, and settings of the control plane.
type linkerdCase struct {
	// annotations are the pod's; config.linkerd.io/ is left out of those that have no other prefix. Where there is no
	// linkerd.io/inject among them it is enabled, and it is taken away by "-".
	annotations map[string]string
	labels      map[string]string
	// namespace has the namespace's annotations in the same form, without a default.
	namespace map[string]string
	// spec is the pod's in YAML; empty for one container.
	spec string
	// kind of the workload; empty for Deployment.
	kind string
	// values are those of linkerd-config that are not the chart's.
	values map[string]any
	// difference is the row of the docs' table that says why the pod is not Linkerd's, of one version at least.
	difference string
}

// fullAnnotations completes the names of annotations.
func fullAnnotations(short map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range short {
		if !strings.Contains(name, "/") {
			name = "config.linkerd.io/" + name
		}
		out[name] = value
	}
	return out
}

// workloadKind is the kind of the case's workload.
func (c linkerdCase) workloadKind() string {
	if c.kind == "" {
		return "Deployment"
	}
	return c.kind
}

// template is the pod as the workload's manifest has it.
func (c linkerdCase) template(t *testing.T) map[string]any {
	t.Helper()
	text := c.spec
	if text == "" {
		text = "containers: [{name: web, image: example.com/orders:7}]"
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	annotations := map[string]any{}
	for name, value := range fullAnnotations(c.annotations) {
		annotations[name] = value
	}
	switch annotations["linkerd.io/inject"] {
	case nil:
		annotations["linkerd.io/inject"] = "enabled"
	case "-":
		delete(annotations, "linkerd.io/inject")
	}
	labels := map[string]any{"app": "orders"}
	for name, value := range c.labels {
		labels[name] = value
	}
	meta := map[string]any{"labels": labels}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

// linkerdNamespace is the case's Namespace.
func (c linkerdCase) linkerdNamespace() map[string]any {
	annotations := map[string]any{}
	for name, value := range fullAnnotations(c.namespace) {
		annotations[name] = value
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "annotations": annotations}}
}

const (
	invalidRow  = "annotations whose values have no meaning"
	wrongInject = "`linkerd.io/inject` with another value, on the pod or its namespace"
	linkerdPort = "containers: [{name: web, ports: [{containerPort: 8080, name: http}, {containerPort: 3306, name: mysql}]}]"
	linkerdInit = "{initContainers: [{name: migrate}, {name: cache, restartPolicy: Always, ports: [{containerPort: 6379, name: redis}]}], " +
		"containers: [{name: web, ports: [{containerPort: 9300}]}, {name: log}]}"
)

// linkerdCases are compared with Linkerd's injectors.
var linkerdCases = map[string]linkerdCase{
	"plain":                          {},
	"ingress":                        {annotations: map[string]string{"linkerd.io/inject": "ingress"}},
	"disabled":                       {annotations: map[string]string{"linkerd.io/inject": "disabled"}},
	"not asked":                      {annotations: map[string]string{"linkerd.io/inject": "-"}},
	"empty":                          {annotations: map[string]string{"linkerd.io/inject": ""}},
	"wrong word":                     {annotations: map[string]string{"linkerd.io/inject": "yes"}, difference: wrongInject},
	"namespace":                      {annotations: map[string]string{"linkerd.io/inject": "-"}, namespace: map[string]string{"linkerd.io/inject": "enabled"}},
	"namespace, pod empty":           {annotations: map[string]string{"linkerd.io/inject": ""}, namespace: map[string]string{"linkerd.io/inject": "enabled"}},
	"namespace ingress":              {annotations: map[string]string{"linkerd.io/inject": "-"}, namespace: map[string]string{"linkerd.io/inject": "ingress"}},
	"namespace, pod ingress":         {annotations: map[string]string{"linkerd.io/inject": "ingress"}, namespace: map[string]string{"linkerd.io/inject": "enabled"}},
	"namespace, pod disabled":        {annotations: map[string]string{"linkerd.io/inject": "disabled"}, namespace: map[string]string{"linkerd.io/inject": "enabled"}},
	"namespace disabled":             {annotations: map[string]string{"linkerd.io/inject": "-"}, namespace: map[string]string{"linkerd.io/inject": "disabled"}},
	"namespace disabled, pod on":     {namespace: map[string]string{"linkerd.io/inject": "disabled"}},
	"namespace wrong word":           {annotations: map[string]string{"linkerd.io/inject": "-"}, namespace: map[string]string{"linkerd.io/inject": "true"}},
	"namespace wrong word, pod on":   {namespace: map[string]string{"linkerd.io/inject": "true"}, difference: wrongInject},
	"namespace settings":             {annotations: map[string]string{"proxy-log-level": "debug"}, namespace: map[string]string{"proxy-cpu-request": "50m", "proxy-log-level": "info", "skip-outbound-ports": "6379", "config.alpha.linkerd.io/proxy-wait-before-exit-seconds": "4", "proxy-await": "disabled"}},
	"namespace settings, not passed": {namespace: map[string]string{"debug-image": "example.com/debug", "enable-gateway": "true", "proxy-cpu-ratio-limit": "0.5", "close-wait-timeout": "3s", "example.com/x": "y"}},
	"namespace opaque ports":         {namespace: map[string]string{"opaque-ports": "1234"}, spec: linkerdPort},
	"namespace debug":                {namespace: map[string]string{"enable-debug-sidecar": "true"}, difference: "the place of `linkerd-debug`"},

	"StatefulSet":   {kind: "StatefulSet"},
	"DaemonSet":     {kind: "DaemonSet"},
	"Job":           {kind: "Job"},
	"CronJob":       {kind: "CronJob"},
	"ReplicaSet":    {kind: "ReplicaSet"},
	"Pod":           {kind: "Pod"},
	"host network":  {spec: "{hostNetwork: true, containers: [{name: web}]}"},
	"own proxy":     {spec: "containers: [{name: web}, {name: linkerd-proxy, image: own}]"},
	"own image":     {spec: "{initContainers: [{name: p, image: 'cr.l5d.io/linkerd/proxy:7', restartPolicy: Always}], containers: [{name: web}]}"},
	"own init":      {spec: "{initContainers: [{name: linkerd-init, image: own}], containers: [{name: web}]}"},
	"Istio":         {spec: "{initContainers: [{name: istio-init, image: i}], containers: [{name: web}, {name: istio-proxy, image: i}]}"},
	"Istio, native": {spec: "{initContainers: [{name: istio-proxy, image: i, restartPolicy: Always}], containers: [{name: web}]}"},
	"UDP":           {spec: "containers: [{name: web, ports: [{containerPort: 53, protocol: UDP}]}]"},
	"no token":      {spec: "{automountServiceAccountToken: false, containers: [{name: web}]}"},
	"no token, no projection": {spec: "{automountServiceAccountToken: false, containers: [{name: web}]}",
		values: map[string]any{"identity": map[string]any{"serviceAccountTokenProjection": false}}},
	"no projection": {values: map[string]any{"identity": map[string]any{"serviceAccountTokenProjection": false}}},
	"own token": {spec: "{automountServiceAccountToken: false, volumes: [{name: own-token, projected: {sources: [{serviceAccountToken: {path: token}}]}}], " +
		"containers: [{name: web, volumeMounts: [{name: own-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]}]}"},

	"init containers":        {spec: linkerdInit},
	"init containers, await": {spec: linkerdInit, annotations: map[string]string{"config.alpha.linkerd.io/proxy-enable-native-sidecar": "false"}},
	"ports":                  {spec: linkerdPort},
	"many ports":             {spec: "containers: [{name: web, ports: [{containerPort: 9090}, {containerPort: 80}, {containerPort: 443}, {containerPort: 80, protocol: UDP}]}, {name: b, ports: [{containerPort: 25}, {containerPort: 3306}]}]"},
	"probes":                 {spec: "containers: [{name: web, ports: [{containerPort: 80, name: http}], livenessProbe: {httpGet: {port: 8081, path: /}}, readinessProbe: {httpGet: {port: http, path: /}}, startupProbe: {httpGet: {port: 7}}}, {name: b, readinessProbe: {tcpSocket: {port: 99}}}]"},
	"capabilities":           {spec: "containers: [{name: web, securityContext: {capabilities: {add: [SYS_TIME], drop: [NET_RAW, CHOWN]}}}, {name: b, securityContext: {capabilities: {add: [KILL]}}}]"},
	"capabilities dropped":   {spec: "containers: [{name: web, securityContext: {capabilities: {drop: [ALL]}}}]"},
	"volumes":                {spec: "{containers: [{name: web, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}}]}"},
	"volume of that name":    {spec: "{containers: [{name: web}], volumes: [{name: linkerd-identity-token, emptyDir: {}}]}", difference: "a volume with the name of one of Linkerd's"},

	"image":                 {annotations: map[string]string{"proxy-image": "example.com/proxy", "proxy-version": "v7", "image-pull-policy": "Always"}},
	"init image":            {annotations: map[string]string{"init-image": "example.com/init", "init-image-version": "v9"}},
	"proxy ports":           {annotations: map[string]string{"inbound-port": "5143", "outbound-port": "5140", "admin-port": "5191", "control-port": "5190"}},
	"skipped ports":         {annotations: map[string]string{"skip-inbound-ports": "22,8100-8102", "skip-outbound-ports": "9200", "skip-subnets": "10.1.0.0/16"}},
	"nothing skipped":       {annotations: map[string]string{"skip-inbound-ports": "", "skip-outbound-ports": ""}},
	"opaque ports":          {annotations: map[string]string{"opaque-ports": "3000, 5000-6000,mysql,80-80"}, spec: linkerdPort},
	"no opaque ports":       {annotations: map[string]string{"opaque-ports": ""}, spec: linkerdPort},
	"opaque port unknown":   {annotations: map[string]string{"opaque-ports": "nope,80"}, difference: "`opaque-ports` with a name that no port has"},
	"opaque port of init":   {annotations: map[string]string{"opaque-ports": "redis"}, spec: linkerdInit, difference: "`opaque-ports` with a name that no port has"},
	"identity required":     {annotations: map[string]string{"proxy-require-identity-inbound-ports": "8888,9999"}},
	"inbound policy":        {annotations: map[string]string{"default-inbound-policy": "deny"}},
	"inbound policy wrong":  {annotations: map[string]string{"default-inbound-policy": "all"}, difference: invalidRow},
	"resources":             {annotations: map[string]string{"proxy-cpu-request": "100m", "proxy-cpu-limit": "1500m", "proxy-memory-request": "20Mi", "proxy-memory-limit": "250Mi", "proxy-ephemeral-storage-request": "1Mi", "proxy-ephemeral-storage-limit": "2Mi"}},
	"cpu limit":             {annotations: map[string]string{"proxy-cpu-limit": "2"}},
	"cpu ratio":             {annotations: map[string]string{"proxy-cpu-ratio-limit": "0.3"}},
	"cpu wrong":             {annotations: map[string]string{"proxy-cpu-limit": "much"}, difference: invalidRow},
	"user":                  {annotations: map[string]string{"proxy-uid": "8500", "proxy-gid": "8501"}},
	"user wrong":            {annotations: map[string]string{"proxy-uid": "root"}, difference: invalidRow},
	"log":                   {annotations: map[string]string{"proxy-log-level": "debug", "proxy-log-format": "json", "proxy-log-http-headers": "insecure", "access-log": "apache"}},
	"log of headers wrong":  {annotations: map[string]string{"proxy-log-http-headers": "on"}},
	"no await":              {annotations: map[string]string{"proxy-await": "disabled"}},
	"no await, container":   {annotations: map[string]string{"proxy-await": "disabled", "config.alpha.linkerd.io/proxy-enable-native-sidecar": "false"}},
	"native alpha":          {annotations: map[string]string{"config.alpha.linkerd.io/proxy-enable-native-sidecar": "true"}},
	"native beta":           {annotations: map[string]string{"config.beta.linkerd.io/proxy-enable-native-sidecar": "true", "config.alpha.linkerd.io/proxy-enable-native-sidecar": "false"}},
	"native stable":         {annotations: map[string]string{"proxy-enable-native-sidecar": "false", "config.beta.linkerd.io/proxy-enable-native-sidecar": "true"}},
	"native by namespace":   {namespace: map[string]string{"proxy-enable-native-sidecar": "false", "config.beta.linkerd.io/proxy-enable-native-sidecar": "t", "config.alpha.linkerd.io/proxy-enable-native-sidecar": "false"}},
	"native wrong":          {annotations: map[string]string{"config.alpha.linkerd.io/proxy-enable-native-sidecar": "yes"}, difference: invalidRow},
	"wait":                  {annotations: map[string]string{"config.alpha.linkerd.io/proxy-wait-before-exit-seconds": "10", "config.alpha.linkerd.io/proxy-enable-native-sidecar": "false"}},
	"wait, native":          {annotations: map[string]string{"config.alpha.linkerd.io/proxy-wait-before-exit-seconds": "10", "config.alpha.linkerd.io/proxy-enable-native-sidecar": "true"}},
	"timeouts":              {annotations: map[string]string{"proxy-outbound-connect-timeout": "1.5s", "proxy-inbound-connect-timeout": "200ms", "proxy-outbound-discovery-cache-unused-timeout": "7500ms", "proxy-inbound-discovery-cache-unused-timeout": "2m", "shutdown-grace-period": "1m30s"}},
	"timeout wrong":         {annotations: map[string]string{"proxy-outbound-connect-timeout": "3"}, difference: invalidRow},
	"no detection timeouts": {annotations: map[string]string{"proxy-disable-outbound-protocol-detect-timeout": "true", "proxy-disable-inbound-protocol-detect-timeout": "1"}},
	"further":               {annotations: map[string]string{"enable-external-profiles": "true", "proxy-metrics-hostname-labels": "true", "enable-gateway": "true", "proxy-admin-shutdown": "enabled"}},
	"inbound ports":         {annotations: map[string]string{"pod-inbound-ports": "1,2"}, spec: linkerdPort},
	"more variables":        {annotations: map[string]string{"proxy-additional-env": `[{"name":"B","value":"pod"},{"name":"C","value":"pod"}]`}, namespace: map[string]string{"proxy-additional-env": `[{"name":"A","value":"ns"},{"name":"B","value":"ns"}]`}, values: map[string]any{"proxy": map[string]any{"additionalEnv": []any{map[string]any{"name": "A", "value": "config"}}}}},
	"debug":                 {annotations: map[string]string{"enable-debug-sidecar": "true", "debug-image": "example.com/debug", "debug-image-version": "v1", "debug-image-pull-policy": "Always"}, difference: "the place of `linkerd-debug`"},
	"close wait":            {annotations: map[string]string{"close-wait-timeout": "90s"}},
	"close wait as root":    {annotations: map[string]string{"close-wait-timeout": "90s"}, values: map[string]any{"proxyInit": map[string]any{"runAsRoot": true}}},

	"CNI": {values: map[string]any{"cniEnabled": true}},
	"CNI, IPv6": {values: map[string]any{"cniEnabled": true, "disableIPv6": false, "networkValidator": map[string]any{"logLevel": "info", "timeout": "5s", "connectAddr": "1.2.3.4:5", "securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
		"readOnlyRootFilesystem": true, "runAsGroup": int64(6), "runAsNonRoot": true, "runAsUser": int64(7), "seccompProfile": map[string]any{"type": "RuntimeDefault"}}}}, spec: linkerdInit},
	"IPv6":    {values: map[string]any{"disableIPv6": false}},
	"domains": {values: map[string]any{"clusterDomain": "example.org", "identityTrustDomain": "acme.test", "clusterNetworks": "10.0.0.0/8", "imagePullPolicy": "Always"}},
	"legacy":  {values: map[string]any{"proxyInit": map[string]any{"iptablesMode": "legacy", "logLevel": "debug", "logFormat": "json", "privileged": true, "skipSubnets": "10.2.0.0/16", "ignoreInboundPorts": "", "runAsUser": int64(7), "runAsGroup": int64(8)}}},
	"proxy settings": {values: map[string]any{"proxy": map[string]any{"image": map[string]any{"name": "example.com/p", "version": "v8", "pullPolicy": "Never"},
		"nativeSidecar": false, "await": false, "waitBeforeExitSeconds": int64(5), "uid": int64(7), "gid": int64(8), "logLevel": "trace", "logFormat": "json", "logHTTPHeaders": "insecure",
		"accessLog": "json", "defaultInboundPolicy": "audit", "opaquePorts": "1,2", "requireIdentityOnInboundPorts": "3", "enableExternalProfiles": true, "enableShutdownEndpoint": true,
		"shutdownGracePeriod": "9s", "inboundConnectTimeout": "", "disableInboundProtocolDetectTimeout": true, "isGateway": true,
		"ports":     map[string]any{"inbound": int64(1143), "outbound": int64(1140), "control": int64(1190), "admin": int64(1191)},
		"resources": map[string]any{"cpu": map[string]any{"request": "10m", "limit": "1"}, "memory": map[string]any{"limit": "1Gi"}},
		"control":   map[string]any{"streams": map[string]any{"initialTimeout": "1s", "idleTimeout": "", "lifetime": "2h"}}, "metrics": map[string]any{"hostnameLabels": true}}}},
	"workers":             {values: map[string]any{"proxy": map[string]any{"runtime": map[string]any{"workers": map[string]any{"minimum": int64(2), "maximum": int64(4), "maximumCPURatio": 0.5}}}}},
	"cores":               {values: map[string]any{"proxy": map[string]any{"cores": int64(3)}}, annotations: map[string]string{"proxy-cpu-limit": "2"}},
	"directions":          {values: map[string]any{"proxy": map[string]any{"inbound": map[string]any{"server": map[string]any{"http2": map[string]any{"initialStreamWindowSize": "65535", "keepAliveInterval": "10s", "keepAliveTimeout": "3s"}}}}}},
	"own securityContext": {values: map[string]any{"proxy": map[string]any{"securityContext": map[string]any{"runAsUser": int64(9), "readOnlyRootFilesystem": true}}}},
	"experimental":        {values: map[string]any{"proxy": map[string]any{"experimentalEnv": []any{map[string]any{"name": "X", "value": "1"}}}}},
	"tracing": {values: map[string]any{"proxy": map[string]any{"tracing": map[string]any{"enabled": true, "collector": map[string]any{"endpoint": "collector.example:4317",
		"meshIdentity": map[string]any{"serviceAccountName": "collector", "namespace": "tracing"}}}}}, labels: map[string]string{"app.kubernetes.io/name": "orders"},
		annotations: map[string]string{"resource.opentelemetry.io/team": "shop"}, difference: "tracing"},
}
