// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// PriorityClass is a class of pods by their importance.
type PriorityClass = schedulingv1.PriorityClass

// RuntimeClass is a class of pods by what runs their containers.
type RuntimeClass = nodev1.RuntimeClass

// systemPriorities are the classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// applyPriority sets the priority of the pod's class, or of the default class.
func applyPriority(a *Admission) error {
	spec := &a.Pod.Spec
	value, preemption, known, err := a.priority()
	if err != nil || !known {
		return err
	}
	if spec.Priority != nil && *spec.Priority != value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *spec.Priority, value)
	}
	spec.Priority = &value
	if preemption == nil {
		return nil
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != *preemption {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *spec.PreemptionPolicy, *preemption)
	}
	policy := *preemption
	spec.PreemptionPolicy = &policy
	return nil
}

// priority returns what the class of the pod, or the default class, sets. known is false if the class is not known.
func (a *Admission) priority() (value int32, preemption *corev1.PreemptionPolicy, known bool, err error) {
	lower := corev1.PreemptLowerPriority
	name := a.Pod.Spec.PriorityClassName
	if name == "" {
		class := a.defaultPriority()
		if class == nil {
			if !a.cluster.isComplete("PriorityClass") && len(a.cluster.Priorities) == 0 {
				a.lack("the PriorityClasses of the cluster: one of them may be the default of pods without a class")
			}
			return 0, &lower, true, nil
		}
		a.Trace.cause(Cause{Step: "Priority", Object: "PriorityClass " + class.Name, Detail: "globalDefault: true"})
		a.Pod.Spec.PriorityClassName = class.Name
		return class.Value, orLower(class.PreemptionPolicy), true, nil
	}
	if class := a.cluster.Priorities[name]; class != nil {
		a.Trace.cause(Cause{Step: "Priority", Object: "PriorityClass " + name, Detail: "priorityClassName: " + name})
		return class.Value, orLower(class.PreemptionPolicy), true, nil
	}
	if value, ok := systemPriorities[name]; ok {
		a.Trace.cause(Cause{Step: "Priority", Object: "PriorityClass " + name, Detail: "priorityClassName: " + name})
		return value, &lower, true, nil
	}
	if a.cluster.isComplete("PriorityClass") {
		return 0, nil, false, fmt.Errorf("no PriorityClass with name %s was found", name)
	}
	a.lack("PriorityClass %s: the priority of the pod is not known", name)
	return 0, nil, false, nil
}

// orLower returns a class's policy, or the default of the API.
func orLower(policy *corev1.PreemptionPolicy) *corev1.PreemptionPolicy {
	lower := corev1.PreemptLowerPriority
	return cmp.Or(policy, &lower)
}

// defaultPriority returns the default class: of several, the one with the lowest value.
func (a *Admission) defaultPriority() *PriorityClass {
	var found *PriorityClass
	for _, name := range slices.Sorted(maps.Keys(a.cluster.Priorities)) {
		if class := a.cluster.Priorities[name]; class.GlobalDefault && (found == nil || found.Value > class.Value) {
			found = class
		}
	}
	return found
}

// defaultSeconds is for how long pods tolerate nodes that are not ready, unless flags of the API server set another time.
const defaultSeconds = 300

// applyTolerations adds the tolerations of nodes that are not ready or not reachable.
func applyTolerations(a *Admission) error {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(a.Pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if tolerated {
			continue
		}
		seconds := int64(defaultSeconds)
		a.Pod.Spec.Tolerations = append(a.Pod.Spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	return nil
}

// runtimeClass returns the class of the pod, or nil if it names none or it is not known.
func (a *Admission) runtimeClass() (*RuntimeClass, error) {
	name := a.Pod.Spec.RuntimeClassName
	if name == nil {
		return nil, nil
	}
	if class := a.cluster.Runtimes[*name]; class != nil {
		a.Trace.cause(Cause{Step: "RuntimeClass", Object: "RuntimeClass " + *name, Detail: "runtimeClassName: " + *name})
		return class, nil
	}
	if a.cluster.isComplete("RuntimeClass") {
		return nil, fmt.Errorf("pod rejected: RuntimeClass %q not found", *name)
	}
	a.lack("RuntimeClass %s: its overhead, nodeSelector and tolerations are not known", *name)
	return nil, nil
}

var errOverhead = fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// applyRuntimeClass sets the overhead of the pod's class, and adds its node selector and tolerations.
func applyRuntimeClass(a *Admission) error {
	class, err := a.runtimeClass()
	if class == nil || err != nil {
		return err
	}
	spec := &a.Pod.Spec
	if class.Overhead != nil {
		if len(spec.Overhead) > 0 && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, spec.Overhead) {
			return errOverhead
		}
		spec.Overhead = class.Overhead.DeepCopy().PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		value := class.Scheduling.NodeSelector[key]
		if own, ok := spec.NodeSelector[key]; ok && own != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
		}
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[key] = value
	}
	spec.Tolerations = mergeTolerations(spec.Tolerations, class.Scheduling.Tolerations)
	return nil
}

// mergeTolerations returns both lists without those that another one of them contains (source: MergeTolerations in
// pkg/util/tolerations of k8s.io/kubernetes).
func mergeTolerations(first, second []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(first, second)
	var out []corev1.Toleration
next:
	for i, t := range all {
		for _, kept := range out {
			if covers(kept, t) {
				continue next
			}
		}
		for _, later := range all[i+1:] {
			if covers(later, t) && !equality.Semantic.DeepEqual(t, later) {
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}

// covers reports whether a toleration tolerates all that another one does (source: isSuperset in the same package).
func covers(t, other corev1.Toleration) bool {
	if equality.Semantic.DeepEqual(t, other) {
		return true
	}
	if t.Key != other.Key && (t.Key != "" || t.Operator != corev1.TolerationOpExists) {
		return false
	}
	if t.Effect != other.Effect && t.Effect != "" {
		return false
	}
	if t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil &&
		(other.TolerationSeconds == nil || *other.TolerationSeconds > *t.TolerationSeconds) {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		return other.Operator == corev1.TolerationOpEqual && t.Value == other.Value // and not where it is empty, as there
	case corev1.TolerationOpExists:
		return true
	}
	return false
}

// checkRuntimeClass rejects a pod whose overhead is not that of its class.
func checkRuntimeClass(a *Admission) error {
	class, err := a.runtimeClass()
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, a.Pod.Spec.Overhead) {
			return errOverhead
		}
	case a.Pod.Spec.Overhead != nil && (class != nil || a.Pod.Spec.RuntimeClassName == nil):
		return fmt.Errorf("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	}
	return nil
}

// nodeSelectorAnnotation is where a Namespace has the node selector of its pods.
const nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"

// applyNodeSelector adds the node selector of the namespace, if the plugin is on.
func applyNodeSelector(a *Admission) error {
	ns := a.cluster.Namespaces[a.request.Namespace]
	if !a.cluster.NodeSelectors {
		if ns != nil && ns.Annotations[nodeSelectorAnnotation] != "" {
			a.lack("whether the admission plugin PodNodeSelector is on: the annotation %s of Namespace %s sets a node selector then", nodeSelectorAnnotation, ns.Name)
		}
		return nil
	}
	if ns == nil {
		a.lack("Namespace %s: its annotation %s may set a node selector", a.request.Namespace, nodeSelectorAnnotation)
		return nil
	}
	text, ok := ns.Annotations[nodeSelectorAnnotation]
	if !ok {
		return nil
	}
	selector, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return err
	}
	spec := &a.Pod.Spec
	if labels.Conflicts(selector, labels.Set(spec.NodeSelector)) {
		return fmt.Errorf("pod node label selector conflicts with its namespace node label selector")
	}
	a.Trace.cause(Cause{Step: "PodNodeSelector", Object: "Namespace " + ns.Name, Detail: nodeSelectorAnnotation})
	if merged := labels.Merge(selector, spec.NodeSelector); len(merged) > 0 {
		spec.NodeSelector = merged
	}
	return nil
}
