// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import "strings"

// instrumentationObject is an Instrumentation with a name and the fields of its spec, in flow style.
func instrumentationObject(name, fields string) string {
	return "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: {name: " + name + "}\nspec: {" + fields + "}\n---\n"
}

// askFor are annotations of instrumentation.opentelemetry.io, by pairs of name and value; a name with a slash is a whole one.
func askFor(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i]
		if !strings.Contains(name, "/") {
			name = "instrumentation.opentelemetry.io/" + name
		}
		out[name] = pairs[i+1]
	}
	return out
}

const (
	notInstrumented  = "an annotation that asks for an Instrumentation that does not exist, or is one of several"
	severalLanguages = "several instrumentations for one container, or without containers"
	missingContainer = "a container in an annotation that the pod does not have"
	ownerNames       = "names of ReplicaSets and Jobs, and UIDs of all owners, that do not exist yet"
	unsupported      = "apache-httpd, nginx"
	goRefused        = "go without a program, for several containers or an init container, or with `shareProcessNamespace: false`"
	noCertificates   = "a Secret or ConfigMap of `spec.exporter.tls` that is not in the cluster"
	olderAgents      = "with 0.131.0: init containers in an annotation, and the container's `securityContext`"
	references       = "a container whose `JAVA_TOOL_OPTIONS` and the like are references, or with `OTEL_DOTNET_AUTO_HOME`"
	twice            = "a container with one variable twice"
	wrongPlatform    = "a platform or runtime that is not known"
	twoContainers    = "containers: [{name: web, image: 'example.com/orders:7'}, {name: worker, image: 'example.com/worker:8'}]"
	withInit         = "{initContainers: [{name: prepare, image: p}, {name: migrate, image: 'm:1'}], containers: [{name: web, image: 'example.com/orders:7'}]}"
)

// longName is longer than the name of a volume may be.
const longName = "certificates-of-the-collector-that-is-in-another-cluster-of-ours"

// certificates are a Secret and a ConfigMap, without which the operator leaves pods alone.
func certificates(name string) string {
	return "\n---\n{apiVersion: v1, kind: Secret, metadata: {name: " + name + "}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"
}

func oneContainer(fields string) string {
	return "containers: [{name: web, image: 'example.com/orders:7', " + fields + "}]"
}

var plainObject = instrumentationObject("orders", "exporter: {endpoint: 'http://collector:4317'}, propagators: [tracecontext, baggage], sampler: {type: parentbased_traceidratio, argument: '0.25'}")

// openTelemetryInstrumentationCases are compared with the operator.
var openTelemetryInstrumentationCases = map[string]openTelemetryCase{
	"java":   {annotations: askFor("inject-java", "true"), objects: plainObject},
	"nodejs": {annotations: askFor("inject-nodejs", "true"), objects: plainObject},
	"python": {annotations: askFor("inject-python", "true"), objects: plainObject},
	"dotnet": {annotations: askFor("inject-dotnet", "true"), objects: plainObject},
	"sdk":    {annotations: askFor("inject-sdk", "true"), objects: plainObject},
	"go":     {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: plainObject},
	"apache": {annotations: askFor("inject-apache-httpd", "true"), objects: plainObject, difference: unsupported},
	"nginx":  {annotations: askFor("inject-nginx", "true"), objects: plainObject, difference: unsupported},

	"not asked":             {objects: plainObject},
	"false":                 {annotations: askFor("inject-java", "False"), objects: plainObject},
	"empty":                 {annotations: askFor("inject-java", ""), objects: plainObject},
	"TRUE":                  {annotations: askFor("inject-java", "TRUE"), objects: plainObject},
	"by name":               {annotations: askFor("inject-java", "other"), objects: plainObject + instrumentationObject("other", "java: {image: 'example.com/agent:2'}")},
	"by namespace":          {annotations: askFor("inject-java", "team/orders"), objects: plainObject + otherNamespace(instrumentationObject("orders", "java: {image: 'example.com/team:2'}"))},
	"two":                   {annotations: askFor("inject-java", "true"), objects: plainObject + instrumentationObject("other", ""), difference: notInstrumented},
	"none":                  {annotations: askFor("inject-java", "true"), difference: notInstrumented},
	"wrong name":            {annotations: askFor("inject-java", "other"), objects: plainObject, difference: notInstrumented},
	"namespace":             {namespace: askFor("inject-java", "true"), objects: plainObject},
	"namespace false":       {namespace: askFor("inject-java", "false"), objects: plainObject},
	"namespace, pod false":  {namespace: askFor("inject-java", "true"), annotations: askFor("inject-java", "false"), objects: plainObject},
	"namespace, pod true":   {namespace: askFor("inject-java", "other"), annotations: askFor("inject-java", "true"), objects: plainObject + instrumentationObject("other", "")},
	"namespace, containers": {namespace: askFor("inject-java", "true", "container-names", "worker"), spec: twoContainers, objects: plainObject},

	"empty object":         {annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "")},
	"env":                  {annotations: askFor("inject-nodejs", "true"), objects: instrumentationObject("orders", "env: [{name: A, value: b}, {name: OTEL_SERVICE_NAME, value: mine}], nodejs: {env: [{name: A, value: c}, {name: NODE_OPTIONS, value: '--x'}]}")},
	"images and resources": {annotations: askFor("inject-python", "true"), objects: instrumentationObject("orders", "imagePullPolicy: Always, python: {image: 'example.com/py:1', resourceRequirements: {limits: {cpu: 1}, requests: {memory: 1Mi}}, volumeLimitSize: 300Mi}")},
	"only limits":          {annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "java: {resources: {limits: {cpu: 1}}}")},
	"volume claim":         {annotations: askFor("inject-dotnet", "true"), objects: instrumentationObject("orders", "dotnet: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}")},
	"volume claim, size":   {annotations: askFor("inject-dotnet", "true"), objects: instrumentationObject("orders", "dotnet: {volumeLimitSize: 1Gi, volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}")},
	"java extensions":      {annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "java: {extensions: [{image: 'e:1', dir: /ext}, {image: 'f:1', dir: /more}]}")},
	"resource attributes":  {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "resource: {resourceAttributes: {environment: dev, service.version: '3', k8s.namespace.name: x}}")},
	"exporter tls":         {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "exporter: {endpoint: 'https://c:4317', tls: {ca_file: /a/ca.crt}}")},
	"exporter tls, secret": {annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "exporter: {endpoint: 'https://c:4317', tls: {secretName: certs, ca_file: ca.crt, cert_file: tls.crt, key_file: tls.key}}") + certificates("certs")},
	"exporter tls, both":   {annotations: askFor("inject-sdk", "true", "container-names", "web,worker"), spec: twoContainers, objects: instrumentationObject("orders", "exporter: {tls: {secretName: certs, configMapName: certs, ca_file: ca.crt, cert_file: /c/tls.crt, key_file: /c/tls.key}}") + certificates("certs")},
	"exporter tls, long":   {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "exporter: {tls: {secretName: "+longName+", ca_file: ca.crt}}") + certificates(longName)},
	"exporter tls, own": {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "exporter: {tls: {secretName: certs, ca_file: ca.crt}}") + certificates("certs"),
		spec: "{containers: [{name: web, image: i, volumeMounts: [{name: otel-auto-secret-certs, mountPath: /own}]}], volumes: [{name: otel-auto-secret-certs, secret: {secretName: certs}}]}"},

	"go, program of the object": {annotations: askFor("inject-go", "true"), objects: instrumentationObject("orders", "env: [{name: A, value: b}], go: {image: 'g:1', resourceRequirements: {limits: {cpu: 1}}, env: [{name: OTEL_GO_AUTO_TARGET_EXE, value: /bin/app}, {name: OTEL_SERVICE_NAME, value: mine}]}, imagePullPolicy: Always")},
	"go, both programs":         {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: instrumentationObject("orders", "go: {env: [{name: OTEL_GO_AUTO_TARGET_EXE, value: /bin/app}]}")},
	"go, no program":            {annotations: askFor("inject-go", "true"), objects: plainObject, difference: goRefused},
	"go, program of namespace":  {annotations: askFor("inject-go", "true"), namespace: askFor("otel-go-auto-target-exe", "/app"), objects: plainObject, difference: goRefused},
	"go, container":             {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app", "go-container-names", "worker"), spec: twoContainers, objects: plainObject},
	"go, containers":            {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app", "go-container-names", "web,worker"), spec: twoContainers, objects: plainObject, difference: goRefused},
	"go, common containers":     {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app", "container-names", "worker,web"), spec: twoContainers, objects: plainObject},
	"go, init container":        {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app", "container-names", "migrate"), spec: withInit, objects: plainObject, difference: goRefused},
	"go, processes apart":       {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), spec: "{shareProcessNamespace: false, containers: [{name: web, image: i}]}", objects: plainObject, difference: goRefused},
	"go, own attributes":        {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_RESOURCE_ATTRIBUTES, value: 'k8s.namespace.name=mine,service.version=1'}]")},
	"go and java":               {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app", "go-container-names", "web", "inject-java", "true", "java-container-names", "worker"), spec: twoContainers, objects: plainObject},
	"go, no secret":             {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: instrumentationObject("orders", "exporter: {tls: {secretName: certs, ca_file: ca.crt}}"), difference: noCertificates},
	"go, tls":                   {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: instrumentationObject("orders", "exporter: {tls: {secretName: certs, ca_file: ca.crt}}") + certificates("certs")},
	"go, instrumented":          {annotations: askFor("inject-go", "true", "otel-go-auto-target-exe", "/app"), objects: plainObject, spec: "containers: [{name: web, image: i}, {name: opentelemetry-auto-instrumentation, image: i}]"},
	"sampler without type":      {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "propagators: [b3]")},
	"always on":                 {annotations: askFor("inject-sdk", "true"), objects: instrumentationObject("orders", "sampler: {type: always_on}")},

	"own java options":   {annotations: askFor("inject-java", "true"), objects: plainObject, spec: oneContainer("env: [{name: A, value: b}, {name: JAVA_TOOL_OPTIONS, value: -Xmx1g}, {name: C, value: $(A)}]")},
	"own node options":   {annotations: askFor("inject-nodejs", "true"), objects: plainObject, spec: oneContainer("env: [{name: NODE_OPTIONS, value: --trace}]")},
	"own python path":    {annotations: askFor("inject-python", "true"), objects: plainObject, spec: oneContainer("env: [{name: PYTHONPATH, value: /app}, {name: OTEL_LOGS_EXPORTER, value: none}]")},
	"own dotnet hooks":   {annotations: askFor("inject-dotnet", "true"), objects: plainObject, spec: oneContainer("env: [{name: DOTNET_STARTUP_HOOKS, value: /a.dll}, {name: CORECLR_PROFILER, value: x}, {name: DOTNET_SHARED_STORE, value: /s}]")},
	"own dotnet home":    {annotations: askFor("inject-dotnet", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_DOTNET_AUTO_HOME, value: /a}]"), difference: references},
	"java by reference":  {annotations: askFor("inject-java", "true"), objects: plainObject, spec: oneContainer("env: [{name: JAVA_TOOL_OPTIONS, valueFrom: {configMapKeyRef: {name: a, key: b}}}]"), difference: references},
	"own name":           {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_SERVICE_NAME, value: mine}, {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: 'http://mine'}, {name: OTEL_PROPAGATORS, value: b3}]")},
	"own sampler":        {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_TRACES_SAMPLER, value: always_off}]")},
	"own argument":       {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_TRACES_SAMPLER_ARG, value: '1'}]")},
	"own attributes":     {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_RESOURCE_ATTRIBUTES, value: 'service.version=9,k8s.namespace.name=mine'}, {name: A, value: b}]")},
	"own, comma":         {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_RESOURCE_ATTRIBUTES, value: 'a=b,'}]")},
	"own addresses":      {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_POD_IP, value: '1'}, {name: A, value: b}]")},
	"a variable twice":   {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: A, value: b}, {name: A, value: c}]"), difference: twice},
	"instrumented":       {annotations: askFor("inject-java", "true"), objects: plainObject, spec: "{initContainers: [{name: opentelemetry-auto-instrumentation-java, image: i}], containers: [{name: web, image: i}]}"},
	"instrumented, node": {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: oneContainer("env: [{name: OTEL_RESOURCE_ATTRIBUTES_NODE_NAME, value: a}]")},
	"security context":   {annotations: askFor("inject-java", "true"), objects: plainObject, spec: oneContainer("securityContext: {runAsUser: 1000}"), older: olderAgents},
	"own mounts":         {annotations: askFor("inject-java", "true"), objects: plainObject, spec: "{containers: [{name: web, image: i, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}}]}"},
	"node name":          {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: "{nodeName: node-1, containers: [{name: web, image: i}]}"},

	"image without tag":    {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: "containers: [{name: web, image: orders}]"},
	"image with digest":    {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: "containers: [{name: web, image: 'example.com:5000/orders@sha256:0123456789012345678901234567890123456789012345678901234567890123'}]"},
	"image with both":      {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: "containers: [{name: web, image: 'orders:7@sha256:0123456789012345678901234567890123456789012345678901234567890123'}]"},
	"port in the image":    {annotations: askFor("inject-sdk", "true"), objects: plainObject, spec: "containers: [{name: web, image: 'example.com:5000/orders'}]"},
	"resource annotations": {annotations: askFor("inject-sdk", "true", "resource.opentelemetry.io/service.name", "a", "resource.opentelemetry.io/service.version", "b", "resource.opentelemetry.io/service.namespace", "c", "resource.opentelemetry.io/x", "d"), objects: plainObject},
	"instance annotation":  {annotations: askFor("inject-sdk", "true", "resource.opentelemetry.io/service.instance.id", "a"), objects: plainObject},
	"labels":               {annotations: askFor("inject-sdk", "true"), labels: map[string]string{"app.kubernetes.io/name": "a", "app.kubernetes.io/version": "b", "app.kubernetes.io/part-of": "c"}, objects: instrumentationObject("orders", "defaults: {useLabelsForResourceAttributes: true}")},
	"labels, instance":     {annotations: askFor("inject-sdk", "true"), labels: map[string]string{"app.kubernetes.io/name": "a", "app.kubernetes.io/instance": "b"}, objects: instrumentationObject("orders", "defaults: {useLabelsForResourceAttributes: true}")},
	"labels not used":      {annotations: askFor("inject-sdk", "true"), labels: map[string]string{"app.kubernetes.io/name": "a", "app.kubernetes.io/version": "b"}, objects: plainObject},

	"containers":           {annotations: askFor("inject-java", "true", "container-names", "web,worker"), spec: twoContainers, objects: plainObject},
	"second container":     {annotations: askFor("inject-nodejs", "true", "container-names", "worker"), spec: twoContainers, objects: plainObject},
	"language's container": {annotations: askFor("inject-python", "true", "python-container-names", "worker"), spec: twoContainers, objects: plainObject},
	"wrong container":      {annotations: askFor("inject-java", "true", "container-names", "db"), spec: twoContainers, objects: plainObject, difference: missingContainer},
	"wrong list":           {annotations: askFor("inject-java", "true", "container-names", "web, worker"), spec: twoContainers, objects: plainObject, difference: missingContainer},
	"two languages":        {annotations: askFor("inject-java", "true", "java-container-names", "web", "inject-python", "true", "python-container-names", "worker"), spec: twoContainers, objects: plainObject},
	"languages, no names":  {annotations: askFor("inject-java", "true", "inject-python", "true"), spec: twoContainers, objects: plainObject, difference: severalLanguages},
	"languages, one name":  {annotations: askFor("inject-java", "true", "inject-python", "true", "java-container-names", "web"), spec: twoContainers, objects: plainObject, difference: severalLanguages},
	"languages, same name": {annotations: askFor("inject-java", "true", "inject-python", "true", "container-names", "web"), spec: twoContainers, objects: plainObject, difference: severalLanguages},
	"init container":       {annotations: askFor("inject-java", "true", "container-names", "migrate"), spec: withInit, objects: plainObject, older: olderAgents},
	"init and regular":     {annotations: askFor("inject-nodejs", "true", "container-names", "web,migrate"), spec: withInit, objects: plainObject, older: olderAgents},
	"init containers":      {annotations: askFor("inject-python", "true"), spec: withInit, objects: plainObject},
	"init, extensions":     {annotations: askFor("inject-java", "true", "container-names", "migrate"), spec: withInit, objects: instrumentationObject("orders", "java: {extensions: [{image: 'e:1', dir: /ext}]}"), older: olderAgents},

	"musl":           {annotations: askFor("inject-python", "true", "otel-python-platform", "musl"), objects: plainObject},
	"glibc":          {annotations: askFor("inject-python", "true", "otel-python-platform", "glibc"), objects: plainObject},
	"other platform": {annotations: askFor("inject-python", "true", "otel-python-platform", "bsd"), objects: plainObject, difference: wrongPlatform},
	"musl runtime":   {annotations: askFor("inject-dotnet", "true", "otel-dotnet-auto-runtime", "linux-musl-x64"), objects: plainObject},
	"other runtime":  {annotations: askFor("inject-dotnet", "true", "otel-dotnet-auto-runtime", "win-x64"), objects: plainObject, difference: wrongPlatform},
	"Deployment":     {kind: "Deployment", annotations: askFor("inject-java", "true"), objects: plainObject, difference: ownerNames},
	"ReplicaSet":     {kind: "ReplicaSet", annotations: askFor("inject-java", "true"), objects: plainObject},
	"DaemonSet":      {kind: "DaemonSet", annotations: askFor("inject-java", "true"), objects: plainObject},
	"Job":            {kind: "Job", annotations: askFor("inject-java", "true"), objects: plainObject},
	"CronJob":        {kind: "CronJob", annotations: askFor("inject-java", "true"), objects: plainObject, difference: ownerNames},
	"Pod":            {kind: "Pod", annotations: askFor("inject-java", "true"), objects: plainObject},
	"UIDs":           {annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "resource: {addK8sUIDAttributes: true}"), difference: ownerNames},
	"UIDs of a Pod":  {kind: "Pod", annotations: askFor("inject-java", "true"), objects: instrumentationObject("orders", "resource: {addK8sUIDAttributes: true}")},
}
