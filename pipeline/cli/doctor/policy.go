// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// CheckPolicies looks at policies that are files, or come with Prerig, by their names.
func CheckPolicies(ctx context.Context, names []string, o Options) []Finding {
	r := &report{}
	r.reportSupportedVersions(o)
	for _, name := range names {
		named, err := policy.Load(name)
		if err != nil {
			r.addFailure(Policies, name, err, "")
			continue
		}
		if images := named.Spec.Images; images != nil && images.Lock != "" {
			if _, found, err := named.FindLock(images.Lock); err != nil {
				r.addFailure(Policies, named.Origin, err, "")
			} else if !found {
				r.addWarning(Policies, named.Origin,
					"the ImageLock "+images.Lock+" is not next to it, so images are pinned only if the input contains one",
					"create it with prerig images pin")
			}
		}
		r.checkInjection(ctx, named.Origin, []*v1alpha1.InjectionPolicy{named.InjectionPolicy})
	}
	return r.sortedRedactedFindings()
}

// reportSupportedVersions reports the versions that this program supports.
func (r *report) reportSupportedVersions(o Options) {
	r.addPassedCheck(Versions, "", "prerig %s follows Istio 1.%d to 1.%d, and Kubernetes %s to %s", o.Version,
		release.OldestMinor, release.NewestMinor,
		gate.OldestKubernetes, gate.NewestKubernetes)
}

// probe is a workload that asks for every sidecar that waits to be asked.
const probe = `apiVersion: apps/v1
kind: Deployment
metadata: {name: prerig-doctor, namespace: %s}
spec:
  selector: {matchLabels: {app: prerig-doctor}}
  template:
    metadata: {labels: {app: prerig-doctor, sidecar.istio.io/inject: "true"}}
    spec:
      containers:
      - {name: app, image: registry.example.com/app:1}
`

// checkInjection injects a workload that is made up, as templates and values show what is wrong with them only then.
func (r *report) checkInjection(ctx context.Context, where string, policies []*v1alpha1.InjectionPolicy) {
	for _, p := range policies {
		if p.Spec.From == v1alpha1.FromCluster {
			r.addPassedCheck(Policies, where, "injection was not tested: the policy is completed from the cluster, which is not contacted here")
			return
		}
	}
	r.checkVersions(where, policies)
	for _, p := range policies {
		p.Spec.Mode = v1alpha1.ModeInject
		p.Spec.Images = nil    // the lock is among the manifests
		p.Spec.Admission = nil // this program has no code of the API server
	}
	injector, err := fn.New(policies)
	if err != nil {
		r.addFailure(Policies, where, err, "")
		return
	}
	namespace := "prerig-doctor"
	if known := policies[0].Spec.Namespaces; len(known) > 0 {
		namespace = known[0].Name
	}
	file, err := manifest.Parse("", fmt.Appendf(nil, probe, namespace))
	if err != nil {
		r.addFailure(Policies, where, err, "")
		return
	}
	done, err := injector.Run(ctx, []fn.Item{{Doc: file.Docs[0]}})
	if err != nil {
		r.addFailure(Policies, where, err, "")
		return
	}
	bad := false
	for _, one := range done.Results {
		if one.Severity == result.Info || one.Severity == result.Warning && one.ResourceRef != nil && one.ResourceRef.Name == "prerig-doctor" {
			continue // findings about the workload are not about the policy
		}
		bad = bad || one.Severity == result.Error
		said := one
		said.ResourceRef, said.File = nil, nil
		at := where
		if one.Field != nil && (one.ResourceRef == nil || one.ResourceRef.Name != "prerig-doctor") {
			at += " " + one.Field.Path
		}
		r.add(Finding{Area: Policies, Severity: one.Severity, Where: at, Message: said.Message})
	}
	if !bad {
		r.addPassedCheck(Policies, where, "%s", describeOutcomes(done.Outcomes))
	}
}

func describeOutcomes(outcomes []fn.Outcome) string {
	for _, o := range outcomes {
		if o.Action == fn.Injected {
			return "is valid, and a pod that asks for a sidecar gets it"
		}
		if o.Reason != "" {
			return "is valid; a pod without annotations is not injected: " + o.Reason
		}
	}
	return "is valid"
}

// checkVersions compares the versions that policies name with those that are known.
func (r *report) checkVersions(where string, policies []*v1alpha1.InjectionPolicy) {
	for _, p := range policies {
		i := p.Spec.Istio
		if i == nil {
			continue
		}
		if v, ok := istio.ParseVersion(i.Version); ok && v.Minor > release.NewestMinor {
			r.addWarning(Versions, where+" spec.istio.version",
				fmt.Sprintf("Istio %s is newer than this prerig supports, and is treated as 1.%d", i.Version,
					release.NewestMinor),
				"a newer prerig may support it")
		}
		if i.KubernetesVersion != "" {
			if _, err := gate.KubernetesMinor(i.KubernetesVersion); err != nil {
				r.addWarning(Versions, where+" spec.istio.kubernetesVersion", err.Error(),
					"injection uses the nearest version; prerig gate does not")
			}
		}
	}
}
