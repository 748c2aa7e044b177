// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/fn/podvalidation"
)

// proxyName is what Istio calls its proxy's container in every version.
const proxyName = "istio-proxy"

// statusAnnotation is the annotation in which the injector lists what it has injected.
const statusAnnotation = "sidecar.istio.io/status"

// pod is the pod after injection, taken apart once for all rules.
type pod struct {
	in          *Input
	labels      map[string]string
	annotations map[string]string
	spec        map[string]any
	inits       []container
	regular     []container
	before      map[string]map[string]any // the user's own containers by name, nil where Before is not known
	injected    map[string]bool
	overrides   map[string]map[string]any // what the injector noted of them
	proxy       *container
	capture     *container // istio-init or istio-validation
	proxyConfig map[string]any
	problems    func() []podvalidation.Problem // of all containers
}

// container is one container of the pod and its position.
type container struct {
	name   string
	fields map[string]any
	path   string // spec.containers[0]
	index  int
	init   bool
}

// newPod returns nil if the input has no pod to check.
func newPod(in *Input) *pod {
	spec, ok := in.After["spec"].(map[string]any)
	if !ok {
		return nil
	}
	meta, _ := in.After["metadata"].(map[string]any)
	p := &pod{
		in:          in,
		labels:      stringMap(meta["labels"]),
		annotations: stringMap(meta["annotations"]),
		spec:        spec,
		inits:       containersOf(spec, "initContainers", true),
		regular:     containersOf(spec, "containers", false),
		injected:    map[string]bool{},
	}
	if beforeSpec, ok := in.Before["spec"].(map[string]any); ok {
		p.before = map[string]map[string]any{}
		for _, c := range append(containersOf(beforeSpec, "initContainers", true), containersOf(beforeSpec, "containers", false)...) {
			p.before[c.name] = c.fields
		}
	}
	p.findInjected()
	p.findProxy()
	p.problems = sync.OnceValue(func() []podvalidation.Problem { return podvalidation.Check(in.After, validationOptions(p.in)) })
	return p
}

// istioNames are the containers that Istio's own templates bring. Where a user's pod has one of them, it is an override.
var istioNames = []string{proxyName, "istio-init", "istio-validation", "enable-core-dump"}

// findInjected leaves out the user's own containers that a custom template only adds to: the status annotation
// lists them too, and proxy.istio.io/overrides records what they were.
func (p *pod) findInjected() {
	var status, overrides containerLists
	_ = json.Unmarshal([]byte(p.annotations[statusAnnotation]), &status) // absent, or not ours to read
	_ = json.Unmarshal([]byte(p.annotations["proxy.istio.io/overrides"]), &overrides)
	user := overrides.containerNames()
	p.overrides = map[string]map[string]any{}
	for _, v := range append(slices.Clip(overrides.InitContainers), overrides.Containers...) {
		if m, ok := v.(map[string]any); ok {
			p.overrides[textOf(m["name"])] = m
		}
	}
	for name := range p.before {
		user = append(user, name)
	}
	found := status.containerNames()
	if p.before != nil {
		for _, c := range p.allContainers() {
			found = append(found, c.name)
		}
	}
	for _, name := range found {
		if slices.Contains(istioNames, name) && p.annotations[statusAnnotation] != "" || !slices.Contains(user, name) {
			p.injected[name] = true
		}
	}
	for _, name := range p.in.Injected {
		p.injected[name] = true
	}
}

// userOverrideOf returns the user's override of a container that Istio adds, or nil if none exists.
func (p *pod) userOverrideOf(name string) *container {
	if fields, ok := p.before[name]; ok {
		return &container{name: name, fields: fields}
	}
	if fields, ok := p.overrides[name]; ok {
		return &container{name: name, fields: fields}
	}
	return nil
}

// containerLists is a list of containers in an annotation of Istio: by name alone, or as objects.
type containerLists struct {
	InitContainers []any `json:"initContainers"`
	Containers     []any `json:"containers"`
}

func (l containerLists) containerNames() []string {
	var out []string
	for _, v := range append(slices.Clip(l.InitContainers), l.Containers...) {
		if m, ok := v.(map[string]any); ok {
			v = m["name"]
		}
		if name := textOf(v); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// findProxy treats a container called istio-proxy as Istio's proxy only with evidence that it was injected: a
// user's container of that name in a pod that is not injected is a template for an injection that has not happened.
func (p *pod) findProxy() {
	for _, list := range [][]container{p.inits, p.regular} {
		for i := range list {
			c := &list[i]
			if c.name == proxyName && p.proxy == nil && (p.injected[proxyName] || p.annotations[statusAnnotation] != "" || c.runsProxy()) {
				p.proxy = c
			}
		}
	}
	if p.proxy != nil && p.in.Before == nil {
		// istioctl kube-inject puts the status of a CronJob's pods where no pod ever gets it.
		p.injected[proxyName] = true
		for _, c := range p.inits {
			if slices.Contains(istioNames, c.name) {
				p.injected[c.name] = true
			}
		}
	}
	for i := range p.inits {
		if n := p.inits[i].name; n == "istio-init" || n == "istio-validation" {
			p.capture = &p.inits[i]
		}
	}
	if p.proxy == nil {
		return
	}
	if text, ok := p.proxy.literalEnvValue("PROXY_CONFIG"); ok {
		_ = json.Unmarshal([]byte(text), &p.proxyConfig) // anything that is not JSON is a template of the user's own, and irrelevant here
	}
}

// allContainers returns the init containers and then the regular ones, in the order of the pod.
func (p *pod) allContainers() []container {
	return append(slices.Clip(p.inits), p.regular...)
}

// hasNativeProxy reports whether Istio's proxy is an init container that always restarts.
func (p *pod) hasNativeProxy() bool { return p.proxy != nil && p.proxy.isNativeSidecar() }

// hasClassicProxy reports whether Istio's proxy runs next to the application as an ordinary container: the case that
// the kubelet neither starts first nor stops last.
func (p *pod) hasClassicProxy() bool {
	return p.proxy != nil && !p.proxy.init && p.servesLocalApplication()
}

// servesLocalApplication reports whether the proxy serves an application in the same pod: not a gateway, and not the
// agent of a proxyless gRPC application, which has no Envoy.
func (p *pod) servesLocalApplication() bool {
	if p.proxy == nil || slices.Contains(p.proxy.stringList("args"), "router") {
		return false
	}
	disabled, _ := p.proxy.literalEnvValue("DISABLE_ENVOY")
	return disabled != "true" && len(p.applicationContainers()) > 0
}

// applicationContainers returns the regular containers that are not Istio's proxy.
func (p *pod) applicationContainers() []container {
	var out []container
	for _, c := range p.regular {
		if c.name != proxyName {
			out = append(out, c)
		}
	}
	return out
}

// interceptionMode returns REDIRECT, TPROXY or NONE, or "" without a proxy.
func (p *pod) interceptionMode() string {
	if p.proxy == nil {
		return ""
	}
	if mode, ok := p.proxy.literalEnvValue("ISTIO_META_INTERCEPTION_MODE"); ok && mode != "" {
		return strings.ToUpper(mode)
	}
	if p.capture != nil {
		if mode := p.capture.flagValue("-m"); mode != "" {
			return strings.ToUpper(mode)
		}
	}
	if mode := p.annotations["sidecar.istio.io/interceptionMode"]; mode != "" {
		return strings.ToUpper(mode)
	}
	return ""
}

// capturesWithCNI reports whether the CNI plugin captures the traffic of the pod: only then does it have
// istio-validation, and never istio-init.
func (p *pod) capturesWithCNI() bool {
	if p.capture != nil {
		return p.capture.name == "istio-validation"
	}
	return p.in.Facts.CNI == Yes
}

// runsToCompletion reports whether the pod is meant to end by itself.
func (p *pod) runsToCompletion() bool {
	if p.in.Kind == "Job" || p.in.Kind == "CronJob" {
		return true
	}
	policy := textOf(p.spec["restartPolicy"])
	return policy == "Never" || policy == "OnFailure"
}

// gracePeriod is the pod's, in whole seconds as Kubernetes counts it, with Kubernetes' default of 30.
func (p *pod) gracePeriod() (d time.Duration, set bool) {
	if n, ok := integerOf(p.spec["terminationGracePeriodSeconds"]); ok {
		return time.Duration(n) * time.Second, true
	}
	return 30 * time.Second, false
}

func annotationPath(key string) string { return "metadata.annotations[" + strconv.Quote(key) + "]" }

func labelPath(key string) string { return "metadata.labels[" + strconv.Quote(key) + "]" }

func containersOf(spec map[string]any, key string, init bool) []container {
	list, _ := spec[key].([]any)
	out := make([]container, 0, len(list))
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		out = append(out, container{
			name: textOf(fields["name"]), fields: fields, path: fmt.Sprintf("spec.%s[%d]", key, i), index: i, init: init,
		})
	}
	return out
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = textOf(v)
	}
	return out
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func integerOf(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64: // as encoding/json reads a number
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}
