// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

const prunesAutomatically = "automated: {prune: true, selfHeal: true}"

func claimText(name string) string {
	return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: shop}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
}

// TestReviewOfObjectsThatTwoDeploy: what another Application or Kustomization has before and after is neither deleted nor added.
func TestReviewOfObjectsThatTwoDeploy(t *testing.T) {
	both := func(policy string) map[string]string {
		return map[string]string{
			"argocd/one.yaml": prunedApplication("one", "one", policy, ""), "argocd/two.yaml": prunedApplication("two", "two", prunesAutomatically, ""),
			"one/kustomization.yaml": "resources: [ns.yaml, data.yaml]\n", "one/ns.yaml": namespaceText("one"), "one/data.yaml": claimText("data"),
			"two/data.yaml": claimText("data"), "two/ns.yaml": namespaceText("two"),
		}
	}
	fluxBoth := reviewedCluster(map[string]string{"clusters/prod/more.yaml": reviewedPart("more", "./more", "prune: true"),
		"more/data.yaml": claimText("data"), "apps/data.yaml": claimText("data")})
	dropped := map[string]string{"one/kustomization.yaml": "resources: [ns.yaml]\n"}
	gained := both(prunesAutomatically)
	gained["one/kustomization.yaml"] = dropped["one/kustomization.yaml"]
	for name, c := range map[string]reviewed{
		"Applications": {files: both(prunesAutomatically), change: dropped, code: 1,
			wants: []string{"danger: Application argocd/one no longer has 1 object that Application argocd/two has, too, before and after: it stays, unless Application argocd/one has applied it last; " +
				"then Argo CD deletes it, and Application argocd/two creates it again: PersistentVolumeClaim shop/data (argocd)", "no object differs; see the 1 line above"},
			lacks: []string{"deleted: Pers", "deleted maybe"}},
		"an Application that does not prune": {files: both("automated: {}"), change: dropped,
			wants: []string{"moved, which by itself changes nothing in the cluster: 1 object from Application argocd/one of argocd to Application argocd/two of argocd"}, lacks: []string{"deleted:", "danger"}},
		"from now on": {files: gained, change: map[string]string{"one/kustomization.yaml": "resources: [ns.yaml, data.yaml]\n"}, code: 1,
			wants: []string{"Application argocd/one has 1 object from now on that Application argocd/two has, too: each applies it over the other: PersistentVolumeClaim shop/data"}, lacks: []string{"added:", "danger"}},
		"Kustomizations": {files: fluxBoth, change: map[string]string{"apps/data.yaml": ""}, code: 1,
			wants: []string{"danger: Kustomization flux-system/apps no longer has 1 object that Kustomization flux-system/more has, too, before and after: it stays, unless Kustomization flux-system/apps has applied it last; " +
				"then Flux deletes it"}, lacks: []string{"deleted: Pers"}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// TestReviewOfHandovers: what leaves a Kustomization or an Application that prunes may be deleted before the next one has it.
func TestReviewOfHandovers(t *testing.T) {
	cluster := func(prune string) map[string]string {
		return reviewedCluster(map[string]string{"clusters/prod/more.yaml": reviewedPart("more", "./more", "prune: true"), "clusters/prod/apps.yaml": reviewedPart("apps", "./apps", prune),
			"more/ns.yaml": namespaceText("more"), "apps/data.yaml": claimText("data")})
	}
	moved := map[string]string{"apps/data.yaml": "", "more/data.yaml": claimText("data")}
	mixed := cluster("prune: true")
	mixed["argocd/one.yaml"] = prunedApplication("one", "one", prunesAutomatically, "")
	mixed["one/ns.yaml"] = namespaceText("one")
	toFlux := map[string]string{"argocd/one.yaml": mixed["argocd/one.yaml"], "one/ns.yaml": namespaceText("one"), "one/data.yaml": claimText("data")}
	for name, text := range cluster("prune: true") {
		if name != "apps/data.yaml" {
			toFlux[name] = text
		}
	}
	for name, c := range map[string]reviewed{
		"between Kustomizations": {files: cluster("prune: true"), change: moved, code: 1,
			wants: []string{"danger: Kustomization flux-system/apps leaves 1 object to Kustomization flux-system/more: Flux deletes it, and creates it again, unless the new one takes it over first: PersistentVolumeClaim shop/data"},
			lacks: []string{"moved, which"}},
		"between Kustomizations, without pruning": {files: cluster("prune: false"), change: moved, wants: []string{"moved, which by itself changes nothing"}, lacks: []string{"danger"}},
		"to another Kustomization in its place": {files: cluster("prune: true"), code: 1, change: map[string]string{
			"clusters/prod/apps.yaml": strings.ReplaceAll(reviewedPart("apps", "./apps", "prune: true"), "name: apps", "name: shop")},
			wants: []string{"danger: Kustomization flux-system/apps is deleted, and Kustomization flux-system/shop is in its place: Flux deletes"}, lacks: []string{"moved, which"}},
		"from a Kustomization to an Application": {files: mixed, code: 1, change: map[string]string{"apps/data.yaml": "", "one/data.yaml": claimText("data")},
			wants: []string{"danger: Kustomization flux-system/apps leaves 1 object to Application argocd/one: Flux deletes it, as the labels of the Kustomization remain, and Application argocd/one creates it again"}},
		"from an Application to a Kustomization": {files: toFlux, code: 1, change: map[string]string{"one/data.yaml": "", "apps/data.yaml": claimText("data")},
			wants: []string{"danger: Application argocd/one leaves 1 object to Kustomization flux-system/apps: Argo CD deletes it, as the labels of the Application remain, and Kustomization flux-system/apps creates it again"}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}
