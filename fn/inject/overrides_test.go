// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/podmap"
)

const ownPod = `
metadata:
  annotations: {proxy.istio.io/overrides: '%s'}
spec: {containers: [{name: web, image: "web:1"}]}`

// TestOverridesAreReadAsTheWebhookReadsThem: the annotation goes through Kubernetes' types (the oracle's cases
// hold-values/77/408 and resources/77/123, and what its webhook made of the others).
func TestOverridesAreReadAsTheWebhookReadsThem(t *testing.T) {
	for _, c := range []struct{ name, overrides, want, refused string }{
		{"key in other letters", `{"Containers":[{"Name":"istio-proxy","image":"own:1"}]}`, "own:1", ""},
		{"field that Kubernetes does not have", `{"containers":[{"name":"istio-proxy","image":"own:1","x":1}]}`, "own:1", ""},
		{"null", `null`, "proxy", ""},
		{"port as text", `{"containers":[{"name":"istio-proxy","ports":[{"containerPort":"80"}]}]}`, "",
			`metadata.annotations[proxy.istio.io/overrides]: containers[0].ports[0].containerPort: it has to be a number and is the string "80"`},
		{"number with a fraction", `{"containers":[{"name":"elsewhere","ports":[{"containerPort":80.5}]}]}`, "", "metadata.annotations[proxy.istio.io/overrides]: json: "},
		{"quantity that is none", `{"containers":[{"name":"istio-proxy","resources":{"limits":{"cpu":"lots"}}}]}`, "", "metadata.annotations[proxy.istio.io/overrides]: "},
		{"name that is a number", `{"initContainers":[{"name":1}]}`, "", "initContainers[0].name: it has to be a string and is the number 1"},
		{"list", `[]`, "", "metadata.annotations[proxy.istio.io/overrides]: it has to be a map and is a list"},
		{"nothing", ``, "", "metadata.annotations[proxy.istio.io/overrides]: it is not valid JSON: unexpected end of JSON input; write an object such as {\"containers\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Istio(smallInjector(t, "1.31", smallTemplate), Request{Pod: podOf(t, strings.Replace(ownPod, "%s", c.overrides, 1))})
			expectProxy(t, got, err, c.want, c.refused)
		})
	}
}

// expectProxy checks that an injection gave the proxy an image, or was refused with an error that says something.
func expectProxy(t *testing.T, got Result, err error, image, refused string) {
	t.Helper()
	if refused != "" {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("got the error %v, want one that says %q", err, refused)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPod(got.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if found := p.findProxyContainer(false)["image"]; found != image {
		t.Errorf("the proxy's image is %v, want %s", found, image)
	}
}

// TestStatusOfNoInjection: what the status annotation of a pod lists is no container of the user's for istiod since 1.17,
// whoever wrote it (the oracle's case openshift-old-kubelet/77/257), and it panics over lists that are none.
func TestStatusOfNoInjection(t *testing.T) {
	const overrides = `{"containers":[{"name":"istio-proxy","image":"own:1"}]}`
	for _, c := range []struct{ name, version, status, want, refused string }{
		{"listed", "1.31", `{"containers":["istio-proxy"]}`, "proxy", ""},
		{"listed, before 1.17", "1.16", `{"containers":["istio-proxy"]}`, "own:1", ""},
		{"listed under another key", "1.31", `{"Containers":["istio-proxy"]}`, "own:1", ""},
		{"null", "1.31", `{"containers":null}`, "own:1", ""},
		{"not JSON", "1.31", `istio-proxy`, "own:1", ""},
		{"text for a list", "1.31", `{"containers":"istio-proxy"}`, "", "metadata.annotations[sidecar.istio.io/status]: containers is not a list of names"},
		{"a number for a name", "1.31", `{"initContainers":[1]}`, "", "metadata.annotations[sidecar.istio.io/status]: initContainers is not a list of names"},
		{"text for a list, before 1.17", "1.16", `{"containers":"istio-proxy"}`, "own:1", ""},
		{"text for a list that is not read", "1.31", `{"volumes":"x"}`, "own:1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := podOf(t, strings.Replace(ownPod, "%s", overrides, 1))
			pod["metadata"].(map[string]any)["annotations"].(map[string]any)[statusAnnotation] = c.status
			got, err := Istio(smallInjector(t, c.version, smallTemplate), Request{Pod: pod, KeepListed: true})
			expectProxy(t, got, err, c.want, c.refused)
		})
	}
}

// TestOverridesHaveTheFieldsOfTheirTime: the annotation that notes the user's own container has the fields that the release's
// Kubernetes types have, and an annotation of the user's sets no others.
func TestOverridesHaveTheFieldsOfTheirTime(t *testing.T) {
	const defaults = `"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}]}`
	for _, c := range []struct {
		version string
		want    string
	}{
		{"1.31", `{"containers":[{"name":"istio-proxy","resources":{},"restartPolicyRules":[{"action":"Restart"}],"volumeMounts":[{"name":"v","recursiveReadOnly":"Disabled","mountPath":"/v"}],"lifecycle":{"stopSignal":"SIGUSR1"},` + defaults},
		{"1.27", `{"containers":[{"name":"istio-proxy","resources":{},"volumeMounts":[{"name":"v","recursiveReadOnly":"Disabled","mountPath":"/v"}],"lifecycle":{"stopSignal":"SIGUSR1"},` + defaults},
		{"1.24", `{"containers":[{"name":"istio-proxy","resources":{},"volumeMounts":[{"name":"v","recursiveReadOnly":"Disabled","mountPath":"/v"}],"lifecycle":{},` + defaults},
		{"1.18", `{"containers":[{"name":"istio-proxy","resources":{},"volumeMounts":[{"name":"v","mountPath":"/v"}],"lifecycle":{},` + defaults},
	} {
		t.Run(c.version, func(t *testing.T) {
			const fields = `lifecycle: {stopSignal: SIGUSR1}, restartPolicyRules: [{action: Restart}],
        volumeMounts: [{name: v, mountPath: /v, recursiveReadOnly: Disabled, bindMountOptions: [noexec]}]`
			pod := podOf(t, `spec: {containers: [{name: web}, {name: istio-proxy, `+fields+`}]}`)
			got, err := Istio(smallInjector(t, c.version, smallTemplate), Request{Pod: pod})
			if err != nil {
				t.Fatal(err)
			}
			p, err := newPod(got.Pod)
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := p.annotation(overridesAnnotation); text != c.want {
				t.Errorf("the annotation is\n%s, want\n%s", text, c.want)
			}
			if mount, _ := podmap.Find(p.findProxyContainer(false)["volumeMounts"].([]any), "v")["bindMountOptions"].([]any); len(mount) != 1 {
				t.Errorf("the user's own container has lost a field: %v", p.findProxyContainer(false))
			}
		})
	}
}

// TestNewerFields: each field of the table is one that containers have.
func TestNewerFields(t *testing.T) {
	for minor, fields := range newerFields {
		for _, path := range fields {
			s := podmap.ContainerSchema()
			for _, name := range path {
				if s.Kind == podmap.ListKind {
					s = s.Elem
				}
				f := s.Field(name)
				if f == nil {
					t.Fatalf("containers have no field %s, which the table says is of 1.%d", strings.Join(path, "."), minor)
				}
				s = f.Schema
			}
		}
	}
}
