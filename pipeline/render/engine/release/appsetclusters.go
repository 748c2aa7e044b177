// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Argo CD keeps each cluster in a Secret with this label, and knows the one that it runs in by these.
const (
	secretTypeLabel  = "argocd.argoproj.io/secret-type"
	inClusterName    = "in-cluster"
	inClusterAddress = "https://kubernetes.default.svc"
)

// cluster is a cluster of Argo CD.
type cluster struct {
	name, server, project string
	labels, annotations   map[string]string
}

// clusters returns the clusters among the objects, by their names. An error is about one that cannot be read.
func (s *Set) clusters() (out []cluster, unreadable error) {
	for _, o := range s.secrets {
		one := cluster{labels: textsAt(o, "labels"), annotations: textsAt(o, "annotations")}
		if one.labels[secretTypeLabel] != "cluster" {
			continue
		}
		if err := one.read(o); err != nil {
			ref := o.Ref()
			unreadable = fmt.Errorf("%s: %w", ref.String(), err)
			continue
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b cluster) int { return cmp.Compare(a.name, b.name) })
	return out, unreadable
}

// read reads the Secret of a cluster.
func (c *cluster) read(o *Object) (err error) {
	if o.Value["sops"] != nil {
		return errors.New("it is encrypted; write another one with name, server and labels alone, which need not be secret")
	}
	for key, to := range map[string]*string{"name": &c.name, "server": &c.server, "project": &c.project} {
		if *to, _, err = DataOf(o, key); err != nil {
			return err
		}
	}
	return nil
}

// textsAt returns the texts of a map in the metadata of an object.
func textsAt(o *Object, key string) map[string]string {
	out := map[string]string{}
	for name, value := range mapAt(mapAt(o.Value, "metadata"), key) {
		if text, ok := value.(string); ok {
			out[name] = text
		}
	}
	return out
}

func (g *appSetGenerator) generateClusters(at string, spec any) ([]params, error) {
	var generator struct {
		Selector metav1.LabelSelector `json:"selector"`
		Values   map[string]string    `json:"values"`
		FlatList bool                 `json:"flatList"`
	}
	if err := decodeGenerator(at, spec, &generator); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(&generator.Selector)
	if err != nil {
		return nil, &fieldError{at + ".selector", err}
	}
	all, err := g.set.clusters()
	if err == nil && len(all) == 0 {
		err = errors.New("needs Argo CD's clusters, and none are among the objects; name a file of Secrets with the label " + secretTypeLabel +
			": cluster, and name and server in stringData, under spec.build.releases.objects, " + keepHint)
	}
	if err != nil {
		return nil, &fieldError{at, err}
	}
	local := slices.ContainsFunc(all, func(c cluster) bool { return c.server == inClusterAddress })
	if !local && selector.Empty() {
		all = append(all, cluster{name: inClusterName, server: inClusterAddress})
	}
	var out []params
	for _, one := range all {
		if !selector.Matches(labels.Set(one.labels)) {
			continue
		}
		made := g.clusterParams(one)
		if err := g.addValues(made, generator.Values); err != nil {
			return nil, &fieldError{at + ".values", err}
		}
		out = append(out, made)
	}
	if generator.FlatList {
		return []params{{"clusters": out}}, nil
	}
	return out, nil
}

// clusterParams returns the parameters of a cluster.
func (g *appSetGenerator) clusterParams(one cluster) params {
	out := params{"name": one.name, "nameNormalized": normalizeName(one.name), "server": one.server, "project": one.project}
	if one.labels == nil { // the cluster that Argo CD runs in, where it has no Secret
		return out
	}
	meta := map[string]any{}
	for kind, texts := range map[string]map[string]string{"labels": one.labels, "annotations": one.annotations} {
		if len(texts) > 0 {
			meta[kind] = texts
		}
		if g.templates.goTemplate {
			continue
		}
		for key, value := range texts {
			out["metadata."+kind+"."+key] = value
		}
	}
	if g.templates.goTemplate {
		out["metadata"] = meta
	}
	return out
}
