// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Installation is one way to install Istio.
type Installation struct {
	// Name is short, and part of the names of its cases.
	Name string
	// Values are passed to the chart of istiod.
	Values map[string]any
	// Kubelet is the version of the nodes' kubelets.
	Kubelet string
	// Platform annotations of namespaces, such as OpenShift's, are on the namespace shop.
	Annotations map[string]string
	// ProxyConfigs are the cluster's resources of this kind.
	ProxyConfigs []ProxyConfig
	// Workloads are written by hand; nil where they are drawn.
	Workloads []map[string]any
	// Since is the minor of the first Istio 1 that can be installed so; 0 where every one can.
	Since int
}

// ProxyConfig is a resource of networking.istio.io/v1beta1.
type ProxyConfig struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Spec as YAML.
	Spec string `json:"spec"`
}

// Namespace is one of the cluster.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// Namespaces are the same in every installation, but for the label with which a revision is chosen.
func (i Installation) Namespaces() []Namespace {
	choose := map[string]string{"istio-injection": "enabled"}
	if r := i.istioRevision(); r != "default" {
		choose = map[string]string{"istio.io/rev": r}
	}
	revised := i.istioRevision()
	if tags, _ := i.Values["revisionTags"].([]any); len(tags) > 0 {
		revised, _ = tags[0].(string) // a name for the revision, with webhooks of its own
	}
	return []Namespace{
		{"shop", choose, i.Annotations},
		{"plain", nil, nil},
		{"off", map[string]string{"istio-injection": "disabled"}, nil},
		{"revised", map[string]string{"istio.io/rev": revised}, nil},
		{"config", choose, nil},
		{"kube-system", choose, nil},
		{"1234", choose, nil},
		{"local-path-storage", choose, nil},
		{"both", map[string]string{"istio-injection": "enabled", "istio.io/rev": revised}, nil},
		{"ambient", map[string]string{"istio.io/dataplane-mode": "ambient"}, nil},
		{"ambient-injected", withLabel(choose, "istio.io/dataplane-mode", "ambient"), nil},
	}
}

// withLabel returns labels with one more.
func withLabel(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	out[key] = value
	return out
}

func (i Installation) istioRevision() string {
	if r, _ := i.Values["revision"].(string); r != "" {
		return r
	}
	return "default"
}

// cluster is what an installation puts into the cluster.
type cluster struct {
	Installation
	config, values, mesh string
	env                  map[string]string
	webhooks             []admissionregistration.MutatingWebhookConfiguration
	// raw reports whether the webhook receives pods that no API server has defaulted.
	raw bool
	// builtIn reports whether Prerig uses its built-in policy istio, with the installation's values over the
	// policy's own.
	builtIn bool
	// byChart reports whether Prerig with the chart's configuration replaces the webhook.
	byChart bool
}

// renderInstallations returns the clusters as set up by the installations.
func renderInstallations(ctx context.Context, o Options) ([]*cluster, error) {
	type request struct {
		Values    map[string]any `json:"values"`
		Directory string         `json:"directory,omitempty"`
	}
	type answer struct{ Manifests, Error string }
	var requests []request
	for _, i := range o.Installations {
		values := withDefaults(i.Values, map[string]any{"global": map[string]any{"hub": "docker.io/istio", "tag": o.Version}})
		requests = append(requests, request{values, o.Charts})
	}
	answers, err := exchangeJSONLines[request, answer](ctx, requests, o.Tools.Charts)
	if err != nil {
		return nil, fmt.Errorf("rendering Istio's charts: %w", err)
	}
	out := make([]*cluster, len(answers))
	for n, a := range answers {
		if a.Error != "" {
			return nil, fmt.Errorf("rendering Istio's chart for the installation %s: %s", o.Installations[n].Name, a.Error)
		}
		out[n] = &cluster{Installation: o.Installations[n], env: map[string]string{}, raw: o.Raw, builtIn: o.BuiltIn,
			byChart: o.ByChart}
		if err := out[n].readInjectionManifests(a.Manifests); err != nil {
			return nil, fmt.Errorf("reading the manifests of the installation %s: %w", o.Installations[n].Name, err)
		}
	}
	return out, nil
}

// withDefaults returns the values over some defaults.
func withDefaults(values, defaults map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range defaults {
		out[k] = v
	}
	for k, v := range values {
		over, isMap := v.(map[string]any)
		under, both := out[k].(map[string]any)
		if isMap && both {
			v = withDefaults(over, under)
		}
		out[k] = v
	}
	return out
}

// readInjectionManifests reads from the manifests what the injection depends on.
func (c *cluster) readInjectionManifests(manifests string) error {
	for _, text := range strings.Split(manifests, "\n---") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			return err
		}
		if err := c.readObject(kind.Kind, text); err != nil {
			return err
		}
	}
	if c.config == "" || c.mesh == "" || len(c.webhooks) == 0 {
		return fmt.Errorf("the injector's configuration, the mesh config or the webhooks are missing")
	}
	return nil
}

func (c *cluster) readObject(kind, text string) error {
	switch kind {
	case "ConfigMap":
		var m corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			return err
		}
		switch {
		case m.Data["config"] != "":
			c.config, c.values = m.Data["config"], m.Data["values"]
		case m.Data["mesh"] != "":
			c.mesh = m.Data["mesh"]
		}
	case "Deployment":
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			return err
		}
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.ValueFrom == nil {
				c.env[e.Name] = e.Value
			}
		}
	case "MutatingWebhookConfiguration":
		var w admissionregistration.MutatingWebhookConfiguration
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			return err
		}
		c.webhooks = append(c.webhooks, w)
	}
	return nil
}

// webhookURLPath is that of the URL at which the API server calls the webhook.
func (c *cluster) webhookURLPath() string {
	for _, w := range c.webhooks {
		for _, h := range w.Webhooks {
			if s := h.ClientConfig.Service; s != nil && s.Path != nil {
				return *s.Path
			}
		}
	}
	return "/inject"
}

// toJSON writes a value that can be written.
func toJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // only values of maps, lists and scalars come here
	}
	return out
}
