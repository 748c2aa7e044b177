// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// The trust anchors of Linkerd's own tests, and what its injector notes of them in
// cli/cmd/testdata/inject_emojivoto_deployment.golden.yml at edge-25.4.4.
const (
	linkerdTrustAnchors = `-----BEGIN CERTIFICATE-----
MIIBwTCCAWagAwIBAgIQeDZp5lDaIygQ5UfMKZrFATAKBggqhkjOPQQDAjApMScw
JQYDVQQDEx5pZGVudGl0eS5saW5rZXJkLmNsdXN0ZXIubG9jYWwwHhcNMjAwODI4
MDcxMjQ3WhcNMzAwODI2MDcxMjQ3WjApMScwJQYDVQQDEx5pZGVudGl0eS5saW5r
ZXJkLmNsdXN0ZXIubG9jYWwwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARqc70Z
l1vgw79rjB5uSITICUA6GyfvSFfcuIis7B/XFSkkwAHU5S/s1AAP+R0TX7HBWUC4
uaG4WWsiwJKNn7mgo3AwbjAOBgNVHQ8BAf8EBAMCAQYwEgYDVR0TAQH/BAgwBgEB
/wIBATAdBgNVHQ4EFgQU5YtjVVPfd7I7NLHsn2C26EByGV0wKQYDVR0RBCIwIIIe
aWRlbnRpdHkubGlua2VyZC5jbHVzdGVyLmxvY2FsMAoGCCqGSM49BAMCA0kAMEYC
IQCN7lBFLDDvjx6V0+XkjpKERRsJYf5adMvnloFl48ilJgIhANtxhndcr+QJPuC8
vgUC0d2/9FMueIVMb+46WTCOjsqr
-----END CERTIFICATE-----
`
	linkerdTrustRoot = "8dc603abd4e755c25c94da05abbf29b9b283a784733651020d72f97ca8ab98e4"
)

// linkerdPod injects Linkerd's proxy into a pod with the annotations, with the trust anchors given.
func linkerdPod(t *testing.T, anchors string, annotations map[string]string) corev1.Pod {
	t.Helper()
	policy, err := yaml.Marshal(map[string]any{
		"apiVersion": "prerig.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": map[string]any{"name": "linkerd"},
		"spec": map[string]any{"sidecars": []any{map[string]any{
			"builtIn": "linkerd", "values": map[string]any{"trustAnchors": anchors, "native": false},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"linkerd.io/inject": "enabled"}
	for name, value := range annotations {
		all[name] = value
	}
	input, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "emojivoto", "annotations": all},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web-svc", "image": "buoyantio/emojivoto-web:v10",
			"ports": []any{map[string]any{"name": "http", "containerPort": 80}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, results := apply(t, policy, input, v1alpha1.ModeInject)
	var pod corev1.Pod
	if err := yaml.Unmarshal(out, &pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.Containers) != 2 || pod.Spec.Containers[0].Name != "linkerd-proxy" {
		t.Fatalf("the pod has no proxy: %s", results)
	}
	return pod
}

// environment returns the values of a container's variables by name.
func environment(c corev1.Container) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		out[e.Name] = e.Value
	}
	return out
}

// TestLinkerdTrustRoot compares the digest with the one that Linkerd notes for the same anchors. It does so for the text
// with and without the line break at its end, which a file has and a ConfigMap of Linkerd's has not.
func TestLinkerdTrustRoot(t *testing.T) {
	for name, anchors := range map[string]string{"as a file": linkerdTrustAnchors, "as a ConfigMap": linkerdTrustAnchors[:len(linkerdTrustAnchors)-1]} {
		t.Run(name, func(t *testing.T) {
			pod := linkerdPod(t, anchors, nil)
			if got := pod.Annotations["linkerd.io/trust-root-sha256"]; got != linkerdTrustRoot {
				t.Errorf("the digest is %s, not Linkerd's %s", got, linkerdTrustRoot)
			}
			if got := environment(pod.Spec.Containers[0])["LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS"]; got != linkerdTrustAnchors {
				t.Errorf("the proxy's trust anchors are %q", got)
			}
		})
	}
}

// TestLinkerdLogLevel: Linkerd keeps HTTP headers out of the proxy's log unless it is told to have them there.
func TestLinkerdLogLevel(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"default":         {want: "warn,linkerd=info,hickory=error,[{headers}]=off,[{request}]=off"},
		"own level":       {map[string]string{"config.linkerd.io/proxy-log-level": "debug"}, "debug,[{headers}]=off,[{request}]=off"},
		"headers allowed": {map[string]string{"config.linkerd.io/proxy-log-http-headers": "insecure"}, "warn,linkerd=info,hickory=error"},
		"headers off":     {map[string]string{"config.linkerd.io/proxy-log-http-headers": "off"}, "warn,linkerd=info,hickory=error,[{headers}]=off,[{request}]=off"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := linkerdPod(t, linkerdTrustAnchors, tc.annotations)
			if got := environment(pod.Spec.Containers[0])["LINKERD2_PROXY_LOG"]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
