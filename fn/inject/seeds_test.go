// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/internal/corpustest"
	"github.com/prerig/prerig/internal/moduleroot"
)

// The tests of this file are named after the documents whose systems they run. The documents are read where they lie
// (PRERIG_SEEDS, else beside the corpus) and are not part of this repository.

// seed returns the text of a document, or skips the test.
func seed(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PRERIG_SEEDS")
	if dir == "" {
		root, err := moduleroot.Dir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "seeds")
	}
	data, err := os.ReadFile(filepath.Join(dir, name+".txt"))
	if err != nil {
		t.Skip("the documents are not here; PRERIG_SEEDS says where they are")
	}
	return string(data)
}

// between is the text after the line that has from, up to the line that begins with to.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	if !ok {
		t.Fatalf("the document has no %q", from)
	}
	_, rest, _ = strings.Cut(rest, "\n")
	out, _, ok := strings.Cut(rest, "\n"+to)
	if !ok {
		t.Fatalf("the document has no %q after %q", to, from)
	}
	return out + "\n"
}

// corpusConfig is the default configuration of a version of the corpus.
func corpusConfig(t *testing.T, version string) istio.Options {
	t.Helper()
	o := istio.Options{Version: version}
	for _, cm := range readObjects(t, filepath.Join(corpustest.Dir(t), version, "configmaps.yaml")) {
		data := mapAt(cm, "data")
		for key, to := range map[string]*string{"config": &o.Config, "values": &o.Values, "mesh": &o.Mesh} {
			if text, ok := data[key].(string); ok {
				*to = text
			}
		}
	}
	return o
}

const httpbin = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: httpbin-deployment-v2}
spec:
  selector: {matchLabels: {app: httpbin}}
  template:
    metadata: {labels: {app: httpbin, version: v2}}
    spec:
      containers:
      - {name: httpbin, image: kennethreitz/httpbin, ports: [{containerPort: 80}]}
`

// Test_000_7f079d0222536868 runs the Istio 1.5 configuration of the document, verbatim, and its preStop hooks.
func Test_000_7f079d0222536868(t *testing.T) {
	doc := seed(t, "000_7f079d0222536868")
	config := between(t, doc, "-o jsonpath='{.data.config}'", "istio-sidecar-injector ConfigMap の values")
	values := between(t, doc, "-o jsonpath='{.data.values}'", "preStop hook のカスタマイズ")
	var first, second map[string]any
	if err := yaml.Unmarshal([]byte(between(t, doc, "issue #7136", "netstat で envoy 以外に")), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(between(t, doc, "| jq .global.proxy.lifecycle", "Deployment の Pod を削除すれば")), &second); err != nil {
		t.Fatal(err)
	}

	plain := newInjector(t, istio.Options{Config: config, Values: values})
	if got := plain.Detection(); got.Version.Minor != 5 || got.Generation != istio.GenerationB {
		t.Fatalf("taken for Istio %s, generation %s", got.Version, got.Generation)
	}
	pod := injectYAML(t, plain, httpbin)
	if diff := cmp.Diff([]string{"httpbin", "istio-proxy"}, containerNames(pod.Spec.Containers)); diff != "" {
		t.Error(diff)
	}
	init := containerOf(t, pod.Spec.InitContainers, "istio-init")
	if init.RestartPolicy != nil {
		t.Errorf("istio-init would never end: restartPolicy %s", *init.RestartPolicy)
	}
	if init.Image != "docker.io/istio/proxyv2:1.5.0" || !slices.Equal(init.Command[:3], []string{"istio-iptables", "-p", "15001"}) {
		t.Errorf("have %s %v", init.Image, init.Command)
	}
	proxy := containerOf(t, pod.Spec.Containers, "istio-proxy")
	for _, want := range [][]string{
		{"--serviceCluster", "httpbin.$(POD_NAMESPACE)"}, {"--drainDuration", "45s"}, {"--parentShutdownDuration", "1m0s"},
		{"--discoveryAddress", "istio-pilot:15010"}, {"--connectTimeout", "1s"}, {"--proxyAdminPort", "15000"},
		{"--statusPort", "15020"}, {"--concurrency", "2"},
	} {
		i := slices.Index(proxy.Args, want[0])
		if i < 0 || i+1 >= len(proxy.Args) || proxy.Args[i+1] != want[1] {
			t.Errorf("no %v in %v", want, proxy.Args)
		}
	}
	if proxy.Lifecycle != nil {
		t.Errorf("a lifecycle that nobody asked for: %v", proxy.Lifecycle)
	}
	if got := envOf(proxy, "ISTIO_META_OWNER"); got != "kubernetes://apis/apps/v1/namespaces/default/deployments/httpbin-deployment-v2" {
		t.Errorf("owner %s", got)
	}
	if pod.Labels["security.istio.io/tlsMode"] != "istio" || pod.Labels["service.istio.io/canonical-revision"] != "v2" {
		t.Errorf("labels %v", pod.Labels)
	}

	hooks := map[string]struct {
		lifecycle map[string]any
		waits     string
	}{
		"first form":          {mapAt(first, "lifecycle"), "while [ $(netstat -plunt | grep tcp | grep -v envoy | wc -l | xargs) -ne 0 ]; do sleep 1; done"},
		"without pilot-agent": {second, "while [ $(netstat -plnt | grep tcp | egrep -v 'envoy|pilot-agent' | wc -l) -ne 0 ]; do sleep 1; done"},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			overrides := map[string]any{"global": map[string]any{"proxy": map[string]any{"lifecycle": hook.lifecycle}}}
			in := newInjector(t, istio.Options{Config: config, Values: values, Overrides: overrides})
			pod := injectYAML(t, in, httpbin)
			got := containerOf(t, pod.Spec.Containers, "istio-proxy").Lifecycle
			want := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", hook.waits}}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Test_001_f52907c499dd4ad4 sets what the document describes of the end and the beginning of a pod.
func Test_001_f52907c499dd4ad4(t *testing.T) {
	doc := seed(t, "001_f52907c499dd4ad4")
	for _, name := range []string{"terminationDrainDuration", "EXIT_ON_ZERO_ACTIVE_CONNECTIONS", "holdApplicationUntilProxyStarts"} {
		if !strings.Contains(doc, name) {
			t.Errorf("the document does not speak of %s", name)
		}
	}
	for _, version := range []string{"1.24.6", "1.31.0-rc.0"} {
		t.Run(version, func(t *testing.T) {
			in := newInjector(t, corpusConfig(t, version))
			pod := injectYAML(t, in, strings.Replace(httpbin, "metadata: {labels: {app: httpbin, version: v2}}", `metadata:
      labels: {app: httpbin}
      annotations:
        sidecar.istio.io/nativeSidecar: "false"
        proxy.istio.io/config: |
          terminationDrainDuration: 30s
          holdApplicationUntilProxyStarts: true
          proxyMetadata:
            EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true"
            MINIMUM_DRAIN_DURATION: 10s`, 1))
			if got := containerNames(pod.Spec.Containers); !slices.Equal(got, []string{"istio-proxy", "httpbin"}) {
				t.Errorf("the proxy is not first: %v", got)
			}
			proxy := containerOf(t, pod.Spec.Containers, "istio-proxy")
			want := `{"proxyMetadata":{"EXIT_ON_ZERO_ACTIVE_CONNECTIONS":"true","MINIMUM_DRAIN_DURATION":"10s"},"terminationDrainDuration":"30s","holdApplicationUntilProxyStarts":true}`
			if got := envOf(proxy, "PROXY_CONFIG"); got != want {
				t.Errorf("have %s\nwant %s", got, want)
			}
			if envOf(proxy, "EXIT_ON_ZERO_ACTIVE_CONNECTIONS") != "true" || envOf(proxy, "MINIMUM_DRAIN_DURATION") != "10s" {
				t.Error("the drain settings are not in the proxy's environment")
			}
			if port := proxy.ReadinessProbe.HTTPGet.Port.IntValue(); port != 15021 || proxy.ReadinessProbe.HTTPGet.Path != "/healthz/ready" {
				t.Errorf("readiness %s on %d", proxy.ReadinessProbe.HTTPGet.Path, port)
			}
			if hook := proxy.Lifecycle.PostStart; hook == nil || !slices.Equal(hook.Exec.Command, []string{"pilot-agent", "wait"}) {
				t.Errorf("postStart is %v", hook)
			}
		})
	}
}

// Test_002_1bdd0570f75a890c does the manual injection of the document from three saved files, and its customisations.
func Test_002_1bdd0570f75a890c(t *testing.T) {
	seed(t, "002_1bdd0570f75a890c")
	const version = "1.31.0-rc.0"
	options := corpusConfig(t, version)
	options.Native = istio.NativeDisabled
	in := newInjector(t, options)

	t.Run("customised istio-proxy", func(t *testing.T) {
		pod := injectYAML(t, in, `
apiVersion: v1
kind: Pod
metadata: {name: example}
spec:
  containers:
  - name: hello
    image: alpine
  - name: istio-proxy
    image: auto
    resources: {requests: {cpu: "100m"}}
    volumeMounts:
    - {mountPath: /etc/certs, name: certs}
    lifecycle: {preStop: {exec: {command: ["curl", "10"]}}}
  volumes:
  - name: certs
    secret: {secretName: istio-certs}
`)
		proxy := containerOf(t, pod.Spec.Containers, "istio-proxy")
		if strings.Contains(proxy.Image, "auto") || !strings.Contains(proxy.Image, "proxyv2") {
			t.Errorf("image %s", proxy.Image)
		}
		if got := proxy.Resources.Requests.Cpu().String(); got != "100m" {
			t.Errorf("CPU request %s", got)
		}
		if !slices.ContainsFunc(proxy.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "certs" && m.MountPath == "/etc/certs" }) {
			t.Errorf("mounts %v", proxy.VolumeMounts)
		}
		if proxy.Lifecycle == nil || !slices.Equal(proxy.Lifecycle.PreStop.Exec.Command, []string{"curl", "10"}) {
			t.Errorf("lifecycle %v", proxy.Lifecycle)
		}
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "certs" && v.Secret.SecretName == "istio-certs" }) {
			t.Error("the pod's own volume is gone")
		}
		if len(proxy.Args) == 0 {
			t.Error("the proxy has no arguments")
		}
	})

	t.Run("resource annotations", func(t *testing.T) {
		pod := injectYAML(t, in, strings.Replace(httpbin, "metadata: {labels: {app: httpbin, version: v2}}",
			`metadata: {labels: {app: httpbin}, annotations: {sidecar.istio.io/proxyCPU: "200m", sidecar.istio.io/proxyMemoryLimit: "5Gi"}}`, 1))
		got := containerOf(t, pod.Spec.Containers, "istio-proxy").Resources
		if len(got.Limits) != 1 || got.Limits.Memory().String() != "5Gi" || got.Requests.Cpu().String() != "200m" {
			t.Errorf("have %v", got)
		}
		// The document shows the pod in the cluster, where the API server takes a missing request from the limit.
		for name, limit := range got.Limits {
			if _, ok := got.Requests[name]; !ok {
				got.Requests[name] = limit
			}
		}
		if len(got.Requests) != 2 || got.Requests.Memory().String() != "5Gi" {
			t.Errorf("in the cluster: %v", got)
		}
	})

	t.Run("custom template", func(t *testing.T) {
		config := map[string]any{}
		if err := yaml.Unmarshal([]byte(options.Config), &config); err != nil {
			t.Fatal(err)
		}
		mapAt(config, "templates")["custom"] = "spec:\n  containers:\n  - name: istio-proxy\n    env:\n    - name: GREETING\n      value: hello-world\n"
		text, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		custom := options
		custom.Config = string(text)
		with := newInjector(t, custom)
		annotated := strings.Replace(httpbin, "metadata: {labels: {app: httpbin, version: v2}}",
			`metadata: {labels: {app: httpbin}, annotations: {inject.istio.io/templates: "sidecar,custom"}}`, 1)
		proxy := containerOf(t, injectYAML(t, with, annotated).Spec.Containers, "istio-proxy")
		if envOf(proxy, "GREETING") != "hello-world" || len(proxy.Args) == 0 {
			t.Errorf("have %v %v", proxy.Env, proxy.Args)
		}
		proxy = containerOf(t, injectYAML(t, with, httpbin).Spec.Containers, "istio-proxy")
		if envOf(proxy, "GREETING") != "(not set)" {
			t.Error("pods that do not ask for the custom template get it too")
		}
	})

	t.Run("gateway template", func(t *testing.T) {
		pod := injectYAML(t, in, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress}
spec:
  selector: {matchLabels: {istio: ingress}}
  template:
    metadata: {labels: {istio: ingress}, annotations: {inject.istio.io/templates: gateway}}
    spec:
      containers:
      - {name: istio-proxy, image: auto}
`)
		proxy := containerOf(t, pod.Spec.Containers, "istio-proxy")
		if !slices.Equal(proxy.Args[:2], []string{"proxy", "router"}) || !strings.Contains(proxy.Image, "proxyv2") || len(pod.Spec.InitContainers) > 0 {
			t.Errorf("have %s %v, init containers %v", proxy.Image, proxy.Args, containerNames(pod.Spec.InitContainers))
		}
	})
}

// Test_003_91cbcf2178bc05a1 injects the document's sleep sample with the 1.1.3 configuration.
func Test_003_91cbcf2178bc05a1(t *testing.T) {
	doc := seed(t, "003_91cbcf2178bc05a1")
	sample := between(t, doc, "cat sample/sleep/sleep.yaml", "```")
	if !strings.Contains(sample, "extensions/v1beta1") {
		t.Fatalf("this is not the sample: %s", sample)
	}
	in := newInjector(t, corpusConfig(t, "1.1.3"))
	if got := in.Detection(); got.Generation != istio.GenerationA {
		t.Errorf("generation %s", got.Generation)
	}
	pod := injectYAML(t, in, sample)
	if got := containerNames(pod.Spec.Containers); !slices.Equal(got, []string{"sleep", "istio-proxy"}) {
		t.Errorf("containers %v", got)
	}
	if got := containerNames(pod.Spec.InitContainers); !slices.Equal(got, []string{"istio-init"}) {
		t.Errorf("init containers %v", got)
	}
	sleep := containerOf(t, pod.Spec.Containers, "sleep")
	if diff := cmp.Diff(corev1.Container{Name: "sleep", Image: "pstauffer/curl", Command: []string{"/bin/sleep", "3650d"}, ImagePullPolicy: "IfNotPresent"}, sleep); diff != "" {
		t.Errorf("the application changed: %s", diff)
	}
	proxy, init := containerOf(t, pod.Spec.Containers, "istio-proxy"), containerOf(t, pod.Spec.InitContainers, "istio-init")
	for image, want := range map[string]string{proxy.Image: "docker.io/istio/proxy", init.Image: "docker.io/istio/proxy_init:"} {
		if !strings.HasPrefix(image, want) {
			t.Errorf("image %s, want %s…", image, want)
		}
	}
	if proxy.ImagePullPolicy != "IfNotPresent" || proxy.Ports[0].ContainerPort != 15090 {
		t.Errorf("proxy %v %v", proxy.ImagePullPolicy, proxy.Ports)
	}
	if !slices.Equal(init.Args[:6], []string{"-p", "15001", "-u", "1337", "-m", "REDIRECT"}) || !slices.Contains(init.SecurityContext.Capabilities.Add, "NET_ADMIN") {
		t.Errorf("init %v %v", init.Args, init.SecurityContext)
	}
	// The document shows the beginning of the demo's template; it has to render as well.
	shown := between(t, doc, "get configmap istio-sidecar-injector -o=jsonpath='{.data.config}'", "    <snip>")
	demo := newInjector(t, istio.Options{Version: "1.1.3", Config: shown})
	pod = injectYAML(t, demo, sample)
	if got := containerOf(t, pod.Spec.Containers, "istio-proxy").Image; got != "docker.io/istio/proxyv2:1.1.3" {
		t.Errorf("image %s", got)
	}
	if got := containerOf(t, pod.Spec.InitContainers, "istio-init").Image; got != "docker.io/istio/proxy_init:1.1.3" {
		t.Errorf("image %s", got)
	}
}

// Test_004_d5db59d0793bb32e injects the document's Job with native sidecars, so that it completes.
func Test_004_d5db59d0793bb32e(t *testing.T) {
	doc := seed(t, "004_d5db59d0793bb32e")
	job := "apiVersion: batch/v1\n" + between(t, doc, "apiVersion: batch/v1", "kubectl apply -f sidecar-test-job.yaml")
	for _, version := range []string{"1.24.6", "1.31.0-rc.0"} {
		options := corpusConfig(t, version)
		options.IstiodEnv = map[string]string{"ENABLE_NATIVE_SIDECARS": "true"}
		pod := injectYAML(t, newInjector(t, options), job)
		if got := containerNames(pod.Spec.Containers); !slices.Equal(got, []string{"busybox"}) {
			t.Errorf("%s: the Job waits for %v", version, got)
		}
		proxy := containerOf(t, pod.Spec.InitContainers, "istio-proxy")
		if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways || proxy.StartupProbe == nil {
			t.Errorf("%s: the proxy is not a native sidecar with a startup probe", version)
		}
		if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: restartPolicy %s", version, pod.Spec.RestartPolicy)
		}
		options.IstiodEnv["ENABLE_NATIVE_SIDECARS"] = "false"
		pod = injectYAML(t, newInjector(t, options), job)
		if got := containerNames(pod.Spec.Containers); !slices.Contains(got, "istio-proxy") {
			t.Errorf("%s: native although it is off: %v", version, got)
		}
	}
}
