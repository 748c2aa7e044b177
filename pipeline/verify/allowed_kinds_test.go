// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
)

// webRollout is a Rollout of the template of the Deployment web.
const webRollout = `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, namespace: shop}, spec: {strategy: %s, template: ` + webTemplate + `}}`

// TestRolloutAffinity allows the term that a Rollout writes into a ReplicaSet to keep it off the nodes of the stable one, and no other.
func TestRolloutAffinity(t *testing.T) {
	const (
		required  = `{canary: {antiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}`
		preferred = `{blueGreen: {antiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: {weight: 7}}}}`
		term      = `{labelSelector: {matchExpressions: [{key: rollouts-pod-template-hash, operator: In, values: [stable]}]}, namespaces: [shop], topologyKey: kubernetes.io/hostname}`
		own       = `{labelSelector: {matchLabels: {app: web}}, topologyKey: zone}`
		must      = "requiredDuringSchedulingIgnoredDuringExecution"
		prefers   = "preferredDuringSchedulingIgnoredDuringExecution"
	)
	apart := func(kind, terms string) string { return `podAntiAffinity: {` + kind + `: [` + terms + `]}` }
	for name, c := range map[string]struct {
		strategy, committed, found string
		state                      State
	}{
		"required":               {required, ``, apart(must, term), Current},
		"of the stable one":      {required, ``, ``, Current},
		"beside the template's":  {required, apart(must, own), apart(must, own+", "+term), Current},
		"instead of its":         {required, apart(must, own), apart(must, term), Changed},
		"beside another list":    {required, apart(prefers, `{weight: 1, podAffinityTerm: `+own+`}`), apart(prefers, `{weight: 1, podAffinityTerm: `+own+`}], `+must+`: [`+term), Current},
		"preferred":              {preferred, ``, apart(prefers, `{weight: 7, podAffinityTerm: `+term+`}`), Current},
		"preferred, much":        {preferred, ``, apart(prefers, `{weight: 100, podAffinityTerm: `+term+`}`), Changed},
		"required, it prefers":   {preferred, ``, apart(must, term), Changed},
		"not asked for":          {`{canary: {}}`, ``, apart(must, term), Changed},
		"off its own pods":       {required, ``, apart(must, strings.Replace(term, "[stable]", "[abc]", 1)), Changed},
		"off all":                {required, ``, apart(must, strings.Replace(term, "values: [stable]", "values: [a, b]", 1)), Changed},
		"of another topology":    {required, ``, apart(must, strings.Replace(term, "hostname", "os", 1)), Changed},
		"with something besides": {required, ``, apart(must, term) + `, podAffinity: {` + must + `: [` + own + `]}`, Changed},
	} {
		in := func(affinity string) string {
			if affinity == "" {
				return webSpec
			}
			return "affinity: {" + affinity + "}, " + webSpec
		}
		committed := strings.Replace(strings.Replace(webRollout, "%s", c.strategy, 1), webSpec, in(c.committed), 1)
		pod := strings.Replace(webPod(webOwner, "", in(c.found)), "pod-template-hash", "rollouts-pod-template-hash", 1)
		set := strings.Replace(webReplicaSet(strings.Replace(webTemplate, webSpec, in(c.found), 1)), "apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout", 1)
		for _, objects := range [][]string{{pod}, {pod, set}} {
			if got := verifyObjects(t, "", committed, objects...); got.State != c.state {
				t.Errorf("%s: %s, %s %s", name, got.State, fieldsOf(got), got.Message)
			}
		}
	}
}

// TestRolloutOfADeployment gives pods the metadata and the affinity of a Rollout that takes its template from a Deployment.
func TestRolloutOfADeployment(t *testing.T) {
	const rollout = `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, namespace: shop}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web},
strategy: {canary: {stableMetadata: {labels: {role: stable}}, antiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}}}`
	const affinity = `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [
{key: rollouts-pod-template-hash, operator: In, values: [stable]}]}, namespaces: [shop], topologyKey: kubernetes.io/hostname}]}}, `
	for name, c := range map[string]struct {
		owner, role string
		state       State
	}{
		"its role":                {"Rollout", "stable", Current},
		"another role":            {"Rollout", "canary", Changed},
		"of the Deployment alone": {"Deployment", "stable", Changed},
	} {
		set := webReplicaSet(webTemplate)
		pod := webPod(webOwner, "", affinity+webSpec)
		pod = strings.Replace(pod, "labels: {", "labels: {role: "+c.role+", ", 1)
		if c.owner == "Rollout" {
			pod = strings.Replace(pod, "pod-template-hash", "rollouts-pod-template-hash", 1)
			set = strings.Replace(set, "apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout", 1)
		}
		if got := verifyAll(t, "", []string{rollout, webDeployment}, pod, set); got.State != c.state {
			t.Errorf("%s: %s, %s %s", name, got.State, fieldsOf(got), got.Message)
		}
	}
}

// TestKruise has the pods of OpenKruise's kinds, with the gate and the volumes that its controllers add.
func TestKruise(t *testing.T) {
	const set = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: {
volumeClaimTemplates: [{metadata: {name: data}}], template: ` + webTemplate + `}}`
	pod := func(kind, gate, claim string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: web-x2x7k, namespace: shop, labels: {app: web}, ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1,
kind: ` + kind + `, name: web, controller: true, uid: u}]}, spec: {readinessGates: [{conditionType: ` + gate + `}], volumes: [{name: data, persistentVolumeClaim: {claimName: ` + claim + `}}], ` + webSpec + `}}`
	}
	for name, c := range map[string]struct{ pod, fields string }{
		"as it is made": {pod("CloneSet", "InPlaceUpdateReady", "data-web-x2x7k"), ""},
		"another gate":  {pod("CloneSet", "Other", "data-web-x2x7k"), "spec.readinessGates[Other]"},
		"another claim": {pod("CloneSet", "InPlaceUpdateReady", "data-db-x2x7k"), "spec.volumes[data].persistentVolumeClaim.claimName"},
	} {
		if got := verifyObjects(t, "", set, c.pod); fieldsOf(got) != c.fields || got.State == Foreign {
			t.Errorf("%s: %s, %s %s", name, got.State, fieldsOf(got), got.Message)
		}
	}
	gated := strings.Replace(webPod(webOwner, "", "readinessGates: [{conditionType: InPlaceUpdateReady}], "+webSpec), "web-abc-x2x7k", "x", 1)
	if got := verifyObjects(t, "", webDeployment, gated); got.State != Changed {
		t.Errorf("the gate in the pod of a Deployment: %s", got.State)
	}
}

// TestDaemonSetTolerations has the controller of DaemonSets replace what is committed for a while by its own, which is for ever.
func TestDaemonSetTolerations(t *testing.T) {
	const (
		forAWhile = `tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}], `
		own       = `tolerations: [{key: mine, operator: Exists, effect: NoExecute, tolerationSeconds: 300}], `
	)
	for name, c := range map[string]struct {
		committed, found string
		state            State
	}{
		"for ever":            {forAWhile, strings.Replace(forAWhile, ", tolerationSeconds: 300", "", 1), Current},
		"one of its own":      {own, own, Current},
		"one that is not":     {own, strings.Replace(own, ", tolerationSeconds: 300", "", 1), Changed},
		"of some values only": {strings.Replace(forAWhile, "Exists", "Equal, value: x", 1), strings.Replace(forAWhile, ", tolerationSeconds: 300", "", 1), Changed},
	} {
		committed := strings.Replace(strings.Replace(webDeployment, "Deployment", "DaemonSet", 1), webSpec, c.committed+webSpec, 1)
		pod := webPod(`{apiVersion: apps/v1, kind: DaemonSet, name: web, controller: true, uid: u}`, "", c.found+`nodeName: node1, affinity: {nodeAffinity: {
requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node1]}]}]}}}, `+webSpec)
		pod = strings.Replace(pod, "pod-template-hash: abc", `controller-revision-hash: abc, pod-template-generation: "1"`, 1)
		if got := verifyObjects(t, "", committed, pod); got.State != c.state {
			t.Errorf("%s: %s, %s %s", name, got.State, fieldsOf(got), got.Message)
		}
	}
}
