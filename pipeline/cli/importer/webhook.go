// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

// setWebhooks adds the MutatingWebhookConfigurations that call an Istio injector, of all revisions: we must not
// inject a pod that another revision's webhook matches. Only names and selectors are kept; the certificate is not.
func (b *policyBuilder) setWebhooks(all []*clusterObject) error {
	tags := map[string]bool{}
	for _, o := range all {
		if o.kind != "MutatingWebhookConfiguration" {
			continue
		}
		entries, revision := b.webhookEntries(o)
		if len(entries) == 0 {
			continue
		}
		w, err := v1alpha1.WebhookFromObject(map[string]any{"metadata": o.Value["metadata"], "webhooks": entries})
		if err != nil {
			return fmt.Errorf("importing %s: %w", o, err)
		}
		if len(w.Webhooks) == 0 {
			continue
		}
		w.Revision = revision
		if revision == b.plane.revision {
			w.Revision = ""
			if tag := o.labels[labelTag]; tag != "" {
				tags[tag] = true
			}
		}
		b.spec.Istio.Webhooks = append(b.spec.Istio.Webhooks, w)
	}
	b.spec.Istio.RevisionTags = sortedNames(tags)
	if len(b.spec.Istio.Webhooks) == 0 {
		b.addWarning("the input has no MutatingWebhookConfiguration of Istio: pods are injected by the default selectors of the version")
	}
	return nil
}

// webhookEntries are those entries of a webhook configuration that call an Istio injector, with the revision that they
// call.
func (b *policyBuilder) webhookEntries(o *clusterObject) (entries []any, revision string) {
	for _, entry := range objectsOf(o.Value["webhooks"]) {
		if !callsInjector(entry) {
			continue
		}
		if len(objectsOf(entry["matchConditions"])) > 0 {
			b.addWarning("entry %s of %s has matchConditions, which only a cluster can evaluate: they are not part of the decision", podmap.TextAt(entry, "name"), o)
		}
		revision = b.webhookRevision(o, entry)
		if revision == b.plane.revision {
			b.injectionURL(entry)
		}
		entries = append(entries, entry)
	}
	return entries, revision
}

// callsInjector recognises the entries of every Istio version and of its distributions: by their name, or by the
// service and the path that they call.
func callsInjector(entry map[string]any) bool {
	name := podmap.TextAt(entry, "name")
	if name == "sidecar-injector.istio.io" || strings.HasSuffix(name, ".sidecar-injector.istio.io") {
		return true
	}
	service := podmap.TextAt(entry, "clientConfig", "service", "name")
	path := injectPath(entry)
	return (strings.HasPrefix(service, "istiod") || strings.HasPrefix(service, injectorName)) &&
		(path == "/inject" || strings.HasPrefix(path, "/inject/"))
}

// webhookRevision returns the revision that the entry calls, as the policy names it: another control plane may have
// the same revision in another namespace, as those of OpenShift Service Mesh 2 do, and its namespace distinguishes
// it from the policy's.
func (b *policyBuilder) webhookRevision(o *clusterObject, entry map[string]any) string {
	revision, namespace := calledRevision(o, entry), podmap.TextAt(entry, "clientConfig", "service", "namespace")
	if revision == b.plane.revision && namespace != "" && b.plane.namespace != "" && namespace != b.plane.namespace {
		return revision + "." + namespace
	}
	return revision
}

// calledRevision returns the revision that the entry calls: by the label, or otherwise by the name of the service.
func calledRevision(o *clusterObject, entry map[string]any) string {
	if rev := o.labels[labelRevision]; rev != "" {
		return rev
	}
	if rev, ok := strings.CutPrefix(podmap.TextAt(entry, "clientConfig", "service", "name"), "istiod-"); ok && rev != "" {
		return rev
	}
	return defaultRevision
}

func injectPath(entry map[string]any) string {
	if p := podmap.TextAt(entry, "clientConfig", "service", "path"); p != "" {
		return p
	}
	u, err := url.Parse(podmap.TextAt(entry, "clientConfig", "url"))
	if err != nil {
		return ""
	}
	return u.Path
}

// injectionURL reads the cluster's and the network's name and variables from the path that is called, in both of
// its forms: /inject/cluster/NAME/net/NAME and /inject/:ENV:cluster=NAME:ENV:net=NAME (pkg/kube/inject/webhook.go,
// parseInjectEnvs).
func (b *policyBuilder) injectionURL(entry map[string]any) {
	for key, v := range injectionSettings(injectPath(entry)) {
		var field *string
		switch key {
		case "cluster":
			field = &b.spec.Istio.Cluster
		case "net":
			field = &b.spec.Istio.Network
		default:
			b.proxyEnv(strings.ToUpper(key), v)
			continue
		}
		if *field != "" && *field != v {
			b.addWarning("the webhooks of the revision %s have several values for %s (%s, %s); the first is used",
				b.plane.revision, key, *field, v)
			continue
		}
		*field = v
	}
}

// proxyEnv sets a variable from the path.
func (b *policyBuilder) proxyEnv(name, v string) {
	env := b.spec.Istio.ProxyEnv
	if had, ok := env[name]; ok && had != v {
		b.addWarning("the webhooks of the revision %s have several values for %s (%s, %s); the first is used",
			b.plane.revision, name, had, v)
		return
	}
	if env == nil {
		env = map[string]string{}
		b.spec.Istio.ProxyEnv = env
	}
	env[name] = v
}

func injectionSettings(path string) map[string]string {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), "/inject/")
	if !ok {
		return nil
	}
	settings := map[string]string{}
	if env, ok := strings.CutPrefix(rest, ":ENV:"); ok {
		for pair := range strings.SplitSeq(env, ":ENV:") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				settings[k] = v
			}
		}
		return settings
	}
	parts := strings.Split(rest, "/")
	for pair := range slices.Chunk(parts, 2) {
		if len(pair) == 2 {
			settings[pair[0]] = strings.ReplaceAll(pair[1], "--slash--", "/")
		}
	}
	return settings
}
