// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// appended is what a template of generation A or B prints (source: SidecarInjectionSpec in pkg/kube/inject/inject.go of
// Istio 1.0 to 1.8).
type appended struct {
	RewriteAppHTTPProbe bool                          `json:"rewriteAppHTTPProbe"`
	PodRedirectAnnot    map[string]string             `json:"podRedirectAnnot"`
	InitContainers      []corev1.Container            `json:"initContainers"`
	Containers          []corev1.Container            `json:"containers"`
	Volumes             []corev1.Volume               `json:"volumes"`
	DNSConfig           *corev1.PodDNSConfig          `json:"dnsConfig"`
	ImagePullSecrets    []corev1.LocalObjectReference `json:"imagePullSecrets"`

	dns map[string]any
}

// renderAppended renders the template and reads what it prints into Kubernetes' types: a number where the type wants a
// string becomes one, and fields that the types do not have are dropped.
func (r *run) renderAppended(proxyConfig *mesh.ProxyConfig) (*appended, error) {
	templates, err := r.in.Select(nil)
	if err != nil {
		return nil, err
	}
	t := templates[0]
	data, err := r.newTemplateData(proxyConfig)
	if err != nil {
		return nil, err
	}
	rendered, err := r.in.Render(t, data)
	if err != nil {
		return nil, err
	}
	defer r.in.Release(rendered)
	spec := &appended{}
	if err := yaml.Unmarshal(rendered.Bytes(), spec); err != nil {
		return nil, &gotemplate.Error{Template: t.Name(), Err: fmt.Errorf("what it prints is not an injection: %w", err)}
	}
	for i, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == "" {
			return nil, &gotemplate.Error{Template: t.Name(), Err: fmt.Errorf("container %d of what it prints has no name", i+1)}
		}
	}
	dropNewFields(spec.InitContainers)
	dropNewFields(spec.Containers)
	if spec.DNSConfig != nil {
		if spec.dns, err = runtime.DefaultUnstructuredConverter.ToUnstructured(spec.DNSConfig); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// dropNewFields removes fields that Kubernetes containers did not have when the last version of these generations
// was current: they were never applied then, although Istio's own templates print them. A restartPolicy would turn
// istio-init into a sidecar that never ends.
func dropNewFields(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		c.RestartPolicy, c.RestartPolicyRules, c.ResizePolicy = nil, nil, nil
	}
}

// containerListMaps returns the spec's lists as maps.
func (a *appended) containerListMaps() (map[string][]any, error) {
	out := map[string][]any{}
	var err error
	if out[initContainersKey], err = toMaps(a.InitContainers); err != nil {
		return nil, err
	}
	if out[containersKey], err = toMaps(a.Containers); err != nil {
		return nil, err
	}
	if out["volumes"], err = toMaps(a.Volumes); err != nil {
		return nil, err
	}
	out["imagePullSecrets"], err = toMaps(a.ImagePullSecrets)
	return out, err
}

// toMaps returns typed elements as maps, without the empty resources that Go's types print.
func toMaps[T any](list []T) ([]any, error) {
	out := make([]any, 0, len(list))
	for i := range list {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			return nil, fmt.Errorf("reading what the template prints: %w", err)
		}
		if resources, ok := m["resources"].(map[string]any); ok && len(resources) == 0 {
			delete(m, "resources")
		}
		out = append(out, m)
	}
	return out, nil
}

// concurrencyFlag matches the flag in its forms: -concurrency, --concurrency and with =N.
var concurrencyFlag = lazyregexp.New(`^-{1,2}concurrency(?:=(\d+))?$`)

// applyConcurrency sets the proxy's thread count to the whole CPUs of its CPU limit, or of its request, if its
// arguments do not set one (source: pkg/kube/inject/concurrency.go).
func applyConcurrency(containers []corev1.Container) {
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == proxyContainer })
	if i < 0 || parseNumericFlag(containers[i].Args, concurrencyFlag) > 0 {
		return
	}
	c := &containers[i]
	for _, resources := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		if n := int(math.Ceil(float64(resources.Cpu().MilliValue()) / 1000)); n > 0 {
			c.Args = append(c.Args, "--concurrency", strconv.Itoa(n))
			return
		}
	}
}

// parseNumericFlag returns the numeric value of a flag, or -1 if the flag is missing or has no number.
func parseNumericFlag(args []string, flag *lazyregexp.Regexp) int {
	for i, arg := range args {
		m := flag.FindStringSubmatch(strings.TrimSpace(arg))
		if m == nil {
			continue
		}
		value := m[1]
		if value == "" {
			if i+1 >= len(args) {
				return -1
			}
			value = args[i+1]
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return -1
		}
		return n
	}
	return -1
}
