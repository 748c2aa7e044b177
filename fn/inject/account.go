// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "cmp"

// Account is what is known about a pod's service account.
type Account struct {
	// PullSecrets are the names of its pull secrets.
	PullSecrets []string
	// Known reports whether the account is known, as opposed to known to have no pull secrets.
	Known bool
}

const pullSecretsKey = "imagePullSecrets"

// AccountOf is the name of the service account that a pod runs as.
func AccountOf(obj map[string]any) string {
	spec, _ := obj["spec"].(map[string]any)
	name, _ := spec["serviceAccountName"].(string)
	old, _ := spec["serviceAccount"].(string)
	return cmp.Or(name, old, "default")
}

// nameAccount names the service account of a pod that names none, as the API server does before it calls the webhook.
func nameAccount(p *pod) {
	name := AccountOf(map[string]any{"spec": p.spec})
	p.spec["serviceAccountName"], p.spec["serviceAccount"] = name, name
}

// addPullSecrets adds the service account's pull secrets to a pod that has none, as the API server does before it
// calls the webhook. If the injection has added its own, the API server no longer does so and they must be written
// out; otherwise they are omitted like a default.
func addPullSecrets(p *pod, account Account) {
	if len(p.specListMaps(pullSecretsKey)) > 0 || len(account.PullSecrets) == 0 {
		return
	}
	var list []any
	for _, name := range account.PullSecrets {
		list = append(list, map[string]any{"name": name})
	}
	p.spec[pullSecretsKey] = list
}

// warnOfPullSecrets warns of a pod that has no pull secrets but those of Istio, where it is not known which ones its service
// account has: they are lost.
func (r *run) warnOfPullSecrets(injected *pod) {
	before, after := r.admitted.specListMaps(pullSecretsKey), injected.specListMaps(pullSecretsKey)
	if r.req.Account.Known || len(before) > 0 || len(after) == 0 {
		return
	}
	r.warnings.addf("the pod now has Istio's imagePullSecrets, so the cluster no longer adds those of its "+
		"service account %s; if it has some, give the ServiceAccount with the input or name its secrets in the pod", AccountOf(r.written))
}
