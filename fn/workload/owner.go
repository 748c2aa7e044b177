// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Owner is the workload to which the injector assigns a pod: in Istio's templates TypeMeta and DeploymentMeta, and
// derived from these ISTIO_META_OWNER, ISTIO_META_WORKLOAD_NAME and the canonical name.
//
// # What the webhook finds
//
// The webhook sees a pod and guesses from its controller reference (GetDeployMetaFromPod in pkg/kube of Istio). On
// a cluster the controllers set that reference with their own API version, whatever the manifest has:
//
//	manifest                          webhook                     kube-inject (Declared)
//	Deployment, any group             apps/v1 Deployment          as in the manifest
//	ReplicaSet, any group             apps/v1 ReplicaSet          as in the manifest
//	StatefulSet, DaemonSet            apps/v1                     as in the manifest
//	Job, any group                    batch/v1 Job                as in the manifest
//	CronJob, any version              batch/v1 CronJob            as in the manifest
//	ReplicationController             v1 ReplicationController    v1 ReplicationController
//	DeploymentConfig                  v1 DeploymentConfig         apps.openshift.io/v1, or v1 if so written
//	Rollout (argoproj.io)             v1alpha1 Rollout            does not know the kind
//	StatefulSet (apps.kruise.io)      apps.kruise.io/v1beta1      does not know the kind
//	Pod                               v1 Pod, or by its controller reference if it has a generateName
//	other custom resource             as in the manifest          does not know the kind
//
// The group is missing for a DeploymentConfig because the pod's controller is a v1 ReplicationController, and for a
// Rollout because Istio writes it so. The names of ReplicaSet, ReplicationController and Job go through the same
// heuristics as on the cluster: a Job called backup-12345678 counts as the CronJob backup.
//
// Both are kept because upstream's golden files were made with the manifest's own API version, even where upstream
// compares them with its webhook: Template.Owner is right for a cluster, Template.Declared for such a comparison.
type Owner struct {
	APIVersion, Kind, Name, Namespace string
}

// ownerRule describes how the owner of a kind's pods differs from the object itself; empty parts do not differ.
type ownerRule struct {
	apiVersion, kind, name string
	// pod means that the object is the pod, whose own controller reference counts.
	pod bool
}

// setOwners fills in the owners of a template. key is what [] in the path stood for.
func (t *Template) setOwners(rule ownerRule, meta map[string]any, key string) {
	if rule.pod {
		t.job = controllerOf(t.Pod)
		t.Owner = OfPod(t.Pod)
		t.Declared = t.Owner
		return
	}
	if t.Declared.Name == "" {
		if generate, _ := meta["generateName"].(string); generate != "" {
			t.Declared.Name = strings.TrimRight(generate, "-.")
			t.NameGenerated = true
		}
	}
	o := t.Declared
	if rule.apiVersion != "" {
		o.APIVersion = rule.apiVersion
	}
	if rule.kind != "" {
		o.Kind = rule.kind
	}
	if rule.name != "" {
		o.Name = strings.NewReplacer("{name}", o.Name, "{key}", key).Replace(rule.name)
	}
	labels, _ := Labels(t.Pod)
	t.Owner, t.job = guessOwner(o, labels), o
}

// cronJobName is the name of a Job that counts as a CronJob's, and longJobName one that did in older releases, too.
var (
	cronJobName = lazyregexp.New(`^(.+)-\d{8,10}$`)
	longJobName = lazyregexp.New(`-\d{10}$`)
)

// guessOwner is what Istio makes of a pod's controller reference and labels. It changes only the kinds whose name may
// hide another workload.
func guessOwner(o Owner, labels map[string]string) Owner {
	switch o.Kind {
	case "ReplicaSet":
		if hash := labels["pod-template-hash"]; hash != "" && strings.HasSuffix(o.Name, hash) {
			o.Kind, o.Name = "Deployment", strings.TrimSuffix(o.Name, "-"+hash)
		} else if hash := labels["rollouts-pod-template-hash"]; hash != "" && strings.HasSuffix(o.Name, hash) {
			o.APIVersion, o.Kind, o.Name = "v1alpha1", "Rollout", strings.TrimSuffix(o.Name, "-"+hash)
		}
	case "ReplicationController":
		if config := labels["deploymentconfig"]; config != "" {
			o.Kind, o.Name = "DeploymentConfig", config
		}
	case "Job":
		if m := cronJobName.FindStringSubmatch(o.Name); m != nil {
			o.APIVersion, o.Kind, o.Name = "batch/v1", "CronJob", m[1]
		}
	}
	return o
}

// OfPod returns the owner of a pod as the webhook finds it: by the controller reference if the pod has a
// generateName, otherwise the pod itself. A pod whose name is still to be generated has an empty name then, as at
// admission.
func OfPod(pod map[string]any) Owner {
	labels, _ := Labels(pod)
	return guessOwner(controllerOf(pod), labels)
}

// controllerOf returns what OfPod guesses from.
func controllerOf(pod map[string]any) Owner {
	meta, _ := pod["metadata"].(map[string]any)
	o := Owner{APIVersion: "v1", Kind: "Pod"}
	o.Name, _ = meta["name"].(string)
	o.Namespace, _ = meta["namespace"].(string)
	if generate, _ := meta["generateName"].(string); generate == "" {
		return o
	}
	refs, _ := meta["ownerReferences"].([]any)
	for _, r := range refs {
		ref, _ := r.(map[string]any)
		if controller, _ := ref["controller"].(bool); !controller {
			continue
		}
		name := o.Name
		o.APIVersion, _ = ref["apiVersion"].(string)
		o.Kind, _ = ref["kind"].(string)
		o.Name, _ = ref["name"].(string)
		if o.Name == "" {
			o.Name = name
		}
		return o
	}
	return o
}

// OwnerFor returns the owner as the webhook of a release finds it: from 1.8 to 1.21 a CronJob is reported as
// batch/v1beta1 (istio/istio#27195, #49328), and older ones take no Job for a CronJob's, or only one whose name
// ends in ten digits. What other versions find cannot be known before the cluster makes it: up to 1.7 the name of
// the Job with the time of its run, up to 1.12 that of a DeploymentConfig's ReplicationController with its number
// (#36220), and up to 1.21 that of a Rollout's ReplicaSet with its hash (#49256). In these cases the workload
// itself is the owner, as in newer versions.
func (t Template) OwnerFor(r release.Release) Owner {
	o := t.Owner
	if o.Kind == "CronJob" && t.job.Kind == "Job" && (!feature.In(r, feature.CronJobByName) ||
		!feature.In(r, feature.CronJobByShortName) && !longJobName.MatchString(t.job.Name)) {
		o = t.job
	}
	if feature.In(r, feature.CronJobOfBeta) && o.Kind == "CronJob" && o.APIVersion == "batch/v1" {
		o.APIVersion = "batch/v1beta1"
	}
	return o
}
