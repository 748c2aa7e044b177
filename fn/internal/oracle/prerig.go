// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// importedPolicy returns what a user of the cluster would import.
func (c *cluster) importedPolicy() (*v1alpha1.InjectionPolicy, error) {
	mesh := map[string]any{
		"injector": map[string]any{"config": c.config, "values": c.values}, "meshConfig": c.mesh,
		"kubernetesVersion": strings.TrimPrefix(c.Kubelet, "v"), "istiodEnv": c.env,
	}
	if c.builtIn {
		overrides, err := c.acceptedPolicyOverrides()
		if err != nil {
			return nil, err
		}
		mesh["injector"] = map[string]any{"builtIn": "istio", "overrides": overrides}
	}
	if r := c.istioRevision(); r != "default" {
		mesh["revision"] = r
	}
	if c.raw {
		mesh["admission"] = v1alpha1.AdmissionRaw
	}
	variables := map[string]any{}
	for key, value := range c.settingsFromURLPath() {
		switch key {
		case "cluster":
			mesh["cluster"] = value
		case "net":
			mesh["network"] = value
		default:
			variables[strings.ToUpper(key)] = value
		}
	}
	mesh["proxyEnv"] = variables
	var webhooks []any
	for _, w := range c.webhooks {
		var entries []any
		for _, h := range w.Webhooks {
			entries = append(entries, map[string]any{"name": h.Name, "namespaceSelector": h.NamespaceSelector, "objectSelector": h.ObjectSelector})
		}
		webhooks = append(webhooks, map[string]any{"name": w.Name, "webhooks": entries})
	}
	mesh["webhooks"] = webhooks
	var namespaces []any
	for _, n := range c.Namespaces() {
		namespaces = append(namespaces, map[string]any{"name": n.Name, "labels": n.Labels, "annotations": n.Annotations})
	}
	text, err := yaml.Marshal(dropNull(plainJSON(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": c.Name},
		"spec": map[string]any{"istio": mesh, "namespaces": namespaces, "lint": map[string]any{"disabled": true},
			"jobs": v1alpha1.JobsFollow}, // as the webhook injects each pod, also one that was injected before
	})))
	if err != nil {
		return nil, fmt.Errorf("writing the policy of the installation %s: %w", c.Name, err)
	}
	p, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the policy of the installation %s: %w", c.Name, err)
	}
	return p, nil
}

// acceptedPolicyOverrides returns the values of the installation that the built-in policy accepts: those that the
// webhook's templates read.
func (c *cluster) acceptedPolicyOverrides() (map[string]any, error) {
	var all map[string]any
	if err := yaml.Unmarshal([]byte(c.values), &all); err != nil {
		return nil, fmt.Errorf("reading the values of the installation %s: %w", c.Name, err)
	}
	out := withDefaults(c.Values, nil)
	for _, key := range []string{"meshConfig", "revision", "revisionTags", "profile", "istiodRemote"} {
		delete(out, key)
	}
	if pilot, ok := out["pilot"].(map[string]any); ok {
		out["pilot"] = map[string]any{"cni": pilot["cni"]}
		if pilot["cni"] == nil {
			delete(out, "pilot")
		}
	}
	written, _ := all["global"].(map[string]any)
	global, _ := out["global"].(map[string]any)
	images := map[string]any{}
	for _, key := range []string{"hub", "tag", "variant"} { // a profile may set the variant
		if written[key] != nil {
			images[key] = written[key]
		}
	}
	out["global"] = withDefaults(global, images)
	return out, nil
}

// settingsFromURLPath returns the settings in the path of the webhook's URL.
func (c *cluster) settingsFromURLPath() map[string]string {
	out := map[string]string{}
	parts := strings.Split(strings.Trim(strings.TrimPrefix(c.webhookURLPath(), "/inject"), "/"), "/")
	for i := 0; i+1 < len(parts); i += 2 {
		out[parts[i]] = strings.ReplaceAll(parts[i+1], "--slash--", "/")
	}
	return out
}

// plainJSON returns a value as plain maps and lists.
func plainJSON(v any) any {
	var plain any
	if err := yaml.Unmarshal(toJSON(v), &plain); err != nil {
		panic(err) // what was just written can be read
	}
	return plain
}

func dropNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = dropNull(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = dropNull(v[i])
		}
	}
	return v
}

// made is what Prerig makes of a workload.
type made struct {
	workload map[string]any
	injected bool
	// refused is the message of an error.
	refused string
}

// applyPrerigMode applies a mode of the policy to the workloads, as a user of the cluster would.
func (c *cluster) applyPrerigMode(ctx context.Context, mode v1alpha1.Mode, workloads []map[string]any) ([]made, error) {
	policy, err := c.importedPolicy()
	if err != nil {
		return nil, err
	}
	policy.Spec.Mode = mode
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for i, w := range workloads {
		item, err := itemOf(w, i)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	for _, p := range c.ProxyConfigs {
		item, err := itemOf(p.Object(), len(items))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	report, err := injector.Run(ctx, items)
	if err != nil {
		return nil, err
	}
	return collectReportWorkloads(report, len(workloads))
}

func itemOf(obj map[string]any, index int) (fn.Item, error) {
	text, err := yaml.Marshal(obj)
	if err != nil {
		return fn.Item{}, fmt.Errorf("writing a workload: %w", err)
	}
	file, err := manifest.Parse("", text)
	if err != nil || len(file.Docs) != 1 {
		return fn.Item{}, fmt.Errorf("reading a workload again: %d documents: %w", len(file.Docs), err)
	}
	return fn.Item{Doc: file.Docs[0], Path: "workloads.yaml", Index: index}, nil
}

// Object returns the resource as it is written in a manifest.
func (p ProxyConfig) Object() map[string]any {
	var spec any
	if err := yaml.Unmarshal([]byte(p.Spec), &spec); err != nil {
		panic(err) // the installations are written in this package
	}
	return map[string]any{"apiVersion": "networking.istio.io/v1beta1", "kind": "ProxyConfig",
		"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}, "spec": spec}
}

// collectReportWorkloads returns the first n workloads of a report.
func collectReportWorkloads(report *fn.Report, n int) ([]made, error) {
	out := make([]made, n)
	for _, r := range report.Results {
		if r.Severity != result.Error {
			continue
		}
		if r.File == nil || r.File.Index >= n {
			return nil, fmt.Errorf("injecting: %s", r)
		}
		if m := &out[r.File.Index]; m.refused == "" {
			m.refused = r.Message
		}
	}
	for _, o := range report.Outcomes {
		out[o.File.Index].injected = o.Action == fn.Injected
	}
	for i := range out {
		obj, err := report.Items[i].Doc.Object()
		if err != nil {
			return nil, fmt.Errorf("reading a workload that was injected: %w", err)
		}
		out[i].workload = obj
	}
	return out, nil
}
