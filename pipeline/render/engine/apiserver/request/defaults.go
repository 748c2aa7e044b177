// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults sets the defaults of a kind, but for those of its pods.
func setDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(&o.Spec)
	case *appsv1.ReplicaSet:
		setIfUnset(&o.Spec.Replicas, 1)
	case *corev1.ReplicationController:
		setIfUnset(&o.Spec.Replicas, 1)
		defaultReplicationController(o)
	case *batchv1.Job:
		defaultJob(&o.Spec)
		if len(o.Labels) == 0 {
			o.Labels = o.Spec.Template.Labels
		}
	case *batchv1.CronJob:
		defaultCronJob(&o.Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		defaultAutoscaler(&o.Spec)
	case *networkingv1.NetworkPolicy:
		defaultNetworkPolicy(&o.Spec)
	case *rbacv1.RoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	default:
		setCoreDefaults(object)
	}
}

// setIfUnset sets a number, string or boolean that is unset.
func setIfUnset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// setWordIfEmpty sets a word that is empty.
func setWordIfEmpty[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	setIfUnset(&s.Replicas, 1)
	setWordIfEmpty(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setIfUnset(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setIfUnset(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setIfUnset(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setIfUnset(&s.RevisionHistoryLimit, 10)
	setIfUnset(&s.ProgressDeadlineSeconds, 600)
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	setWordIfEmpty(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setIfUnset(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.RollingUpdate != nil && s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setIfUnset(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	setIfUnset(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setWordIfEmpty(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setWordIfEmpty(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setIfUnset(&s.Replicas, 1)
	setIfUnset(&s.RevisionHistoryLimit, 10)
	for i := range s.VolumeClaimTemplates {
		setIfUnset(&s.VolumeClaimTemplates[i].Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setWordIfEmpty(&s.VolumeClaimTemplates[i].Status.Phase, corev1.ClaimPending)
	}
}

func defaultDaemonSet(s *appsv1.DaemonSetSpec) {
	setWordIfEmpty(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setIfUnset(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setIfUnset(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setIfUnset(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setIfUnset(&s.RevisionHistoryLimit, 10)
}

func defaultReplicationController(o *corev1.ReplicationController) {
	if o.Spec.Template == nil {
		return
	}
	if len(o.Spec.Selector) == 0 {
		o.Spec.Selector = o.Spec.Template.Labels
	}
	if len(o.Labels) == 0 {
		o.Labels = o.Spec.Template.Labels
	}
}

func defaultJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		setIfUnset(&s.Completions, 1)
	}
	setIfUnset(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		setIfUnset(&s.BackoffLimit, math.MaxInt32)
	}
	setIfUnset(&s.BackoffLimit, 6)
	setIfUnset(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setIfUnset(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		setIfUnset(&s.PodReplacementPolicy, batchv1.Failed)
	}
	setIfUnset(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setIfUnset(&s.ManualSelector, false)
}

func defaultCronJob(s *batchv1.CronJobSpec) {
	setWordIfEmpty(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setIfUnset(&s.Suspend, false)
	setIfUnset(&s.SuccessfulJobsHistoryLimit, 3)
	setIfUnset(&s.FailedJobsHistoryLimit, 1)
}

func defaultAutoscaler(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	setIfUnset(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		utilization := int32(80)
		s.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
		}}}
	}
}

func defaultNetworkPolicy(s *networkingv1.NetworkPolicySpec) {
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for _, rule := range s.Ingress {
		for i := range rule.Ports {
			setIfUnset(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range s.Egress {
		for i := range rule.Ports {
			setIfUnset(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setWordIfEmpty(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind {
			setWordIfEmpty(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}
