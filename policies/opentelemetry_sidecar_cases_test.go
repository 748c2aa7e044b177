// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import "strings"

// sidecarObject is an OpenTelemetryCollector with a name and further fields of its spec, in flow style; its configuration
// has what is named, in flow style too.
func sidecarObject(name, fields, config string) string {
	if config == "" {
		config = "{receivers: {otlp: {protocols: {grpc: {}, http: {}}}}, exporters: {debug: {}}, " +
			"service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}"
	}
	if fields != "" {
		fields += ", "
	}
	if !strings.Contains(fields, "mode:") {
		fields += "mode: sidecar, "
	}
	return "apiVersion: opentelemetry.io/v1beta1\nkind: OpenTelemetryCollector\nmetadata: {name: " + name + "}\nspec: {" + fields + "config: " + config + "}\n---\n"
}

// receiverConfig is a configuration with one receiver.
func receiverConfig(name, settings string) string {
	return "{receivers: {" + name + ": " + settings + "}, exporters: {debug: {}}, service: {pipelines: {traces: {receivers: [" + name + "], exporters: [debug]}}}}"
}

// extensionConfig is a configuration with one extension.
func extensionConfig(name, settings string) string {
	return "{receivers: {otlp: {protocols: {grpc: {}}}}, exporters: {debug: {}}, extensions: {" + name + ": " + settings + "}, " +
		"service: {extensions: [" + name + "], pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}"
}

// askSidecar is the annotation that asks for a collector.
func askSidecar(value string) map[string]string {
	return map[string]string{"sidecar.opentelemetry.io/inject": value}
}

const (
	notThere      = "an annotation that asks for a collector that does not exist, is not a sidecar, or is one of several"
	ownContainer  = "`false` on a pod with a container `otc-container`"
	olderOperator = "with 0.131.0: config maps, startup probes, readers of the collector's own metrics, the exporter `prometheus`, ports that are none"
	replicaSet    = "`k8s.deployment.uid`, `k8s.replicaset.name`, `k8s.replicaset.uid` of a Deployment's or ReplicaSet's collector"
)

// otherNamespace puts an object into the namespace team.
func otherNamespace(object string) string {
	return strings.Replace(object, "metadata: {", "metadata: {namespace: team, ", 1)
}

// openTelemetrySidecarCases are compared with the operator.
var openTelemetrySidecarCases = map[string]openTelemetryCase{
	"plain":                     {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"not native":                {annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""), notNative: true},
	"not asked":                 {objects: sidecarObject("orders", "", "")},
	"false":                     {annotations: askSidecar("false"), objects: sidecarObject("orders", "", "")},
	"fAlSe":                     {annotations: askSidecar("fAlSe"), objects: sidecarObject("orders", "", "")},
	"True":                      {annotations: askSidecar("True"), objects: sidecarObject("orders", "", "")},
	"empty":                     {annotations: askSidecar(""), objects: sidecarObject("orders", "", "")},
	"by name":                   {annotations: askSidecar("orders"), objects: sidecarObject("orders", "", "") + sidecarObject("other", "image: 'example.com/other:1'", "")},
	"by namespace, name":        {annotations: askSidecar("team/orders"), objects: otherNamespace(sidecarObject("orders", "image: 'example.com/team:1'", "")) + sidecarObject("orders", "", "")},
	"one of two modes":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "") + sidecarObject("gateway", "mode: deployment", "")},
	"mode not set":              {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "") + sidecarObject("gateway", "mode: ''", "")},
	"only in another":           {annotations: askSidecar("true"), objects: otherNamespace(sidecarObject("orders", "", "")), difference: notThere},
	"two":                       {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "") + sidecarObject("other", "", ""), difference: notThere},
	"none":                      {annotations: askSidecar("true"), difference: notThere},
	"wrong name":                {annotations: askSidecar("other"), objects: sidecarObject("orders", "", ""), difference: notThere},
	"not a sidecar":             {annotations: askSidecar("gateway"), objects: sidecarObject("gateway", "mode: deployment", ""), difference: notThere},
	"namespace":                 {namespace: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"namespace by name":         {namespace: askSidecar("orders"), objects: sidecarObject("orders", "", "") + sidecarObject("other", "", "")},
	"namespace false":           {namespace: askSidecar("false"), objects: sidecarObject("orders", "", "")},
	"namespace empty":           {namespace: askSidecar(""), objects: sidecarObject("orders", "", "")},
	"namespace false, pod true": {namespace: askSidecar("false"), annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"namespace true, pod false": {namespace: askSidecar("true"), annotations: askSidecar("false"), objects: sidecarObject("orders", "", "")},
	"namespace name, pod true":  {namespace: askSidecar("orders"), annotations: askSidecar("true"), objects: sidecarObject("orders", "", "") + sidecarObject("other", "", "")},
	"namespace name, pod name": {namespace: askSidecar("orders"), annotations: askSidecar("other"),
		objects: sidecarObject("orders", "", "") + sidecarObject("other", "image: 'example.com/other:1'", "")},
	"namespace true, pod empty":  {namespace: askSidecar("true"), annotations: askSidecar(""), objects: sidecarObject("orders", "", "")},
	"namespace false, pod empty": {namespace: askSidecar("false"), annotations: askSidecar(""), objects: sidecarObject("orders", "", "")},
	"has one":                    {annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""), spec: "containers: [{name: web, image: i}, {name: otc-container, image: mine}]"},
	"has a native one": {annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""),
		spec: "{initContainers: [{name: otc-container, image: mine, restartPolicy: Always}], containers: [{name: web, image: i}]}"},
	"false, has one": {annotations: askSidecar("false"), difference: ownContainer,
		spec: "{initContainers: [{name: otc-container, image: mine, restartPolicy: Always}], containers: [{name: web, image: i}]}"},
	"init containers": {annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""),
		spec: "{initContainers: [{name: migrate, image: m}], containers: [{name: web, image: i}, {name: log, image: l}]}"},

	"Deployment":  {kind: "Deployment", annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""), difference: replicaSet},
	"ReplicaSet":  {kind: "ReplicaSet", annotations: askSidecar("true"), objects: sidecarObject("orders", "", ""), difference: replicaSet},
	"DaemonSet":   {kind: "DaemonSet", annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"Job":         {kind: "Job", annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"CronJob":     {kind: "CronJob", annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"Pod":         {kind: "Pod", annotations: askSidecar("true"), objects: sidecarObject("orders", "", "")},
	"long name":   {annotations: askSidecar("true"), objects: sidecarObject(strings.Repeat("orders-", 8)+"x", "", "")},
	"longer name": {annotations: askSidecar("true"), objects: sidecarObject(strings.Repeat("orders-", 9)+"y", "", "")},

	"image":            {annotations: askSidecar("true"), objects: sidecarObject("orders", "image: 'example.com/collector:1', imagePullPolicy: Always", "")},
	"args":             {annotations: askSidecar("true"), objects: sidecarObject("orders", "args: {set: a=b, feature-gates: -x, config: other}", "")},
	"env":              {annotations: askSidecar("true"), objects: sidecarObject("orders", "env: [{name: A, value: b}, {name: POD_NAME, value: mine}, {name: GOMAXPROCS, value: '2'}], envFrom: [{secretRef: {name: keys}}]", "")},
	"own attributes":   {annotations: askSidecar("true"), objects: sidecarObject("orders", "env: [{name: OTEL_RESOURCE_ATTRIBUTES, value: a=b}]", "")},
	"resources":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "resources: {limits: {memory: 128Mi, cpu: '1'}, requests: {cpu: 5m}}, securityContext: {runAsNonRoot: true, runAsUser: 1000}", "")},
	"volumes":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "volumes: [{name: data, emptyDir: {}}], volumeMounts: [{name: data, mountPath: /data}]", "")},
	"config maps":      {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "configmaps: [{name: example-config, mountpath: /tmp/example}, {name: ca.bundle, mountpath: certs}]", "")},
	"init container":   {annotations: askSidecar("true"), objects: sidecarObject("orders", "initContainers: [{name: prepare, image: p}]", "")},
	"lifecycle":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "lifecycle: {preStop: {sleep: {seconds: 5}}}", "")},
	"nothing to pods":  {annotations: askSidecar("true"), objects: sidecarObject("orders", "replicas: 3, nodeSelector: {a: b}, serviceAccount: collector, hostNetwork: true, podAnnotations: {a: b}, podSecurityContext: {fsGroup: 1}, upgradeStrategy: none, managementState: unmanaged", "")},
	"init, not native": {annotations: askSidecar("true"), notNative: true, objects: sidecarObject("orders", "initContainers: [{name: prepare, image: p}]", "")},

	"ports":                {annotations: askSidecar("true"), objects: sidecarObject("orders", "ports: [{name: extra, port: 9000}, {name: udp, port: 9001, protocol: UDP, hostPort: 9001}]", "")},
	"ports, same number":   {annotations: askSidecar("true"), objects: sidecarObject("orders", "ports: [{name: mine, port: 4317}]", "")},
	"ports, same name":     {annotations: askSidecar("true"), objects: sidecarObject("orders", "ports: [{name: otlp-grpc, port: 9000}]", "")},
	"ports, another proto": {annotations: askSidecar("true"), objects: sidecarObject("orders", "ports: [{name: mine, port: 4317, protocol: UDP}]", "")},

	"otlp endpoints":           {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {endpoint: '127.0.0.1:5317'}, http: {endpoint: ':5318'}}}"))},
	"otlp port only":           {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {endpoint: '5317'}}}"))},
	"otlp variable":            {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {endpoint: '${env:POD_IP}:4317'}}}"))},
	"otlp null":                {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: , http: }}"))},
	"otlp settings":            {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {http: {cors: {allowed_origins: ['*']}, max_request_body_size: 1048576, include_metadata: true}}}"))},
	"otlp named":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp/2", "{protocols: {grpc: {}}}"))},
	"otlp long name":           {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp/of-the-orders-team", "{protocols: {grpc: {}}}"))},
	"otlp wrong":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {thrift: {}}}"))},
	"otlp not a text":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {endpoint: 4317}}}"))},
	"jaeger":                   {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("jaeger", "{protocols: {grpc: {}, thrift_http: {}, thrift_compact: {}, thrift_binary: {}}}"))},
	"skywalking":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("skywalking", "{protocols: {grpc: {}, http: {}}}"))},
	"loki":                     {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("loki", "{protocols: {grpc: {}, http: {}}}"))},
	"zipkin":                   {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("zipkin", "{}"))},
	"zipkin null":              {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("zipkin", ""))},
	"zipkin elsewhere":         {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("zipkin", "{endpoint: 'localhost:9999'}"))},
	"statsd":                   {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("statsd", "{aggregation_interval: 60s}"))},
	"splunk_hec":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("splunk_hec", "{}"))},
	"tcplog":                   {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("tcplog", "{listen_address: '0.0.0.0:2255'}"))},
	"tcplog, no port":          {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("tcplog", "{}"))},
	"prometheus":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("prometheus", "{config: {scrape_configs: [{job_name: a, scrape_interval: 10s, static_configs: [{targets: ['0.0.0.0:8888']}]}]}}"))},
	"kubeletstats":             {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("kubeletstats", "{auth_type: serviceAccount, endpoint: '${env:K8S_NODE_NAME}:10250'}"))},
	"filelog":                  {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("filelog", "{include: [/var/log/a.log], start_at: beginning}"))},
	"hostmetrics":              {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("hostmetrics", "{scrapers: {cpu: {}, memory: {}}}"))},
	"unknown, port":            {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("mine", "{endpoint: '0.0.0.0:7000'}"))},
	"underscore":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("my_own", "{endpoint: '0.0.0.0:7000'}"))},
	"upper case":               {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp/A", "{protocols: {grpc: {}}}"))},
	"not in a pipeline":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}, zipkin: {}}, exporters: {debug: {}}, service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}")},
	"prometheus exporter":      {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}}, exporters: {prometheus: {}, otlp/next: {endpoint: 'gateway:4317', tls: {insecure: true}}}, service: {pipelines: {metrics: {receivers: [otlp], exporters: [prometheus, otlp/next]}}}}")},
	"prometheus port":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}}, exporters: {prometheus: {endpoint: '0.0.0.0:8889', resource_to_telemetry_conversion: {enabled: true}}}, service: {pipelines: {metrics: {receivers: [otlp], exporters: [prometheus]}}}}")},
	"processors":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}}, processors: {batch: {send_batch_size: 10000, timeout: 10s}, memory_limiter: {check_interval: 1s, limit_percentage: 75.5}}, connectors: {spanmetrics: {}}, exporters: {debug: {}}, service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [spanmetrics]}, metrics: {receivers: [spanmetrics], exporters: [debug]}}}}")},
	"numbers":                  {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("mine", "{a: 999999, b: 1000000, c: 123456789, d: 1.5, e: -2000000, f: 1e-7, g: 10000.0}"))},
	"processors empty":         {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}}, processors: {}, exporters: {debug: {}}, service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}")},
	"texts":                    {annotations: askSidecar("true"), objects: sidecarObject("orders", "", "{receivers: {otlp: {protocols: {grpc: {}}}}, processors: {attributes: {actions: [{key: a.b, value: 'yes', action: insert}, {key: c, value: '007', action: upsert}, {key: 'd: e', value: \"# no comment\", action: insert}, {key: f, value: \"two\\nlines\\n\", action: insert}, {key: g, value: '', action: insert}, {key: h, value: true, action: insert}, {key: i, value: 0.5, action: insert}, {key: j, value: '*', action: insert}]}}, exporters: {debug: {verbosity: detailed}}, service: {pipelines: {traces: {receivers: [otlp], processors: [attributes], exporters: [debug]}}}}")},
	"health check":             {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("health_check", "{}"))},
	"health check null":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("health_check", ""))},
	"health check, not native": {older: olderOperator, annotations: askSidecar("true"), notNative: true, objects: sidecarObject("orders", "", extensionConfig("health_check", "{}"))},
	"health check elsewhere":   {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("health_check", "{endpoint: '127.0.0.1:8080', path: /healthz}"))},
	"health check port":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("health_check/2", "{endpoint: ':8080'}"))},
	"health check variable":    {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("health_check", "{endpoint: '${env:POD_IP}:13133'}"))},
	"probes": {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "livenessProbe: {initialDelaySeconds: 3, timeoutSeconds: 4, periodSeconds: 5}, readinessProbe: {failureThreshold: 7, successThreshold: 2}, startupProbe: {failureThreshold: 30, terminationGracePeriodSeconds: 9}",
		extensionConfig("health_check", "{}"))},
	"zpages":                {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("zpages", "{endpoint: 'localhost:55679'}"))},
	"jaeger query":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "", extensionConfig("jaeger_query", "{storage: {traces: a}}")), difference: "the extension `jaeger_query`"},
	"own telemetry":         {annotations: askSidecar("true"), objects: sidecarObject("orders", "", strings.Replace(receiverConfig("zipkin", "{}"), "service: {", "service: {telemetry: {logs: {level: debug}, metrics: {level: detailed}, resource: {a: b}}, ", 1))},
	"own reader":            {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("orders", "", strings.Replace(receiverConfig("zipkin", "{}"), "service: {", "service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: 9999}}}}]}}, ", 1))},
	"own address":           {annotations: askSidecar("true"), objects: sidecarObject("orders", "", strings.Replace(receiverConfig("zipkin", "{}"), "service: {", "service: {telemetry: {metrics: {address: '127.0.0.1:9998'}}, ", 1))},
	"periodic reader":       {annotations: askSidecar("true"), objects: sidecarObject("orders", "", strings.Replace(receiverConfig("zipkin", "{}"), "service: {", "service: {telemetry: {metrics: {readers: [{periodic: {exporter: {otlp: {protocol: grpc, endpoint: 'a:4317'}}}}]}}, ", 1))},
	"receiver tls":          {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {tls: {cert_file: /a.crt, key_file: /a.key}}}}"))},
	"receiver tls versions": {annotations: askSidecar("true"), objects: sidecarObject("orders", "", receiverConfig("otlp", "{protocols: {grpc: {tls: {cert_file: /a.crt, min_version: '1.2'}}}}"))},

	"tolerations":           {annotations: askSidecar("true"), objects: sidecarObject("orders", "tolerations: [{operator: Exists}]", "")},
	"priority class":        {annotations: askSidecar("true"), objects: sidecarObject("orders", "priorityClassName: high", "")},
	"affinity":              {annotations: askSidecar("true"), objects: sidecarObject("orders", "affinity: {nodeAffinity: {}}", "")},
	"additional containers": {annotations: askSidecar("true"), objects: sidecarObject("orders", "additionalContainers: [{name: a}]", "")},
	"volume claims":         {annotations: askSidecar("true"), objects: sidecarObject("orders", "volumeClaimTemplates: [{metadata: {name: a}}]", "")},
	"ingress":               {annotations: askSidecar("true"), objects: sidecarObject("orders", "ingress: {type: ingress}", "")},

	// The operator's own e2e cases, tests/e2e-sidecar.
	"e2e smoke-sidecar": {older: olderOperator, annotations: askSidecar("true"), objects: sidecarObject("sidecar-for-my-app", "configmaps: [{mountpath: /tmp/example-config, name: example-config}]",
		"{receivers: {jaeger: {protocols: {grpc: {}}}}, processors: {}, exporters: {debug: {}}, service: {pipelines: {traces: {receivers: [jaeger], exporters: [debug]}}}}")},
	"e2e other namespace": {annotations: askSidecar("team/sidecar-for-my-app"), objects: otherNamespace(sidecarObject("sidecar-for-my-app", "", receiverConfig("jaeger", "{protocols: {grpc: {}}}")))},
}
