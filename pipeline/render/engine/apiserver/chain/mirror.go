// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// checkMirror rejects mirror pods, which stand for pods of a kubelet's own files, that refer to what such a pod must not read
// (source: Validate in plugin/pkg/admission/serviceaccount of k8s.io/kubernetes).
func checkMirror(spec *corev1.PodSpec) error {
	if spec.ServiceAccountName != "" {
		return errors.New("a mirror pod may not reference service accounts")
	}
	if slices.ContainsFunc(spec.ImagePullSecrets, func(ref corev1.LocalObjectReference) bool { return ref.Name != "" }) ||
		slices.ContainsFunc(spec.InitContainers, readsSecret) || slices.ContainsFunc(spec.Containers, readsSecret) ||
		slices.ContainsFunc(spec.Volumes, namesSecret) {
		return errors.New("a mirror pod may not reference secrets")
	}
	for _, v := range spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return errors.New("a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

// readsSecret reports whether variables of a container are from a Secret. One without a name does not count.
func readsSecret(c corev1.Container) bool {
	return slices.ContainsFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool { return from.SecretRef != nil && from.SecretRef.Name != "" }) ||
		slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool {
			return env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil && env.ValueFrom.SecretKeyRef.Name != ""
		})
}

// namesSecret reports whether a volume refers to a Secret (source: VisitPodSecretNames in pkg/api/pod of k8s.io/kubernetes).
func namesSecret(v corev1.Volume) bool {
	named := func(ref *corev1.LocalObjectReference) bool { return ref != nil && ref.Name != "" }
	switch {
	case v.AzureFile != nil:
		return v.AzureFile.SecretName != ""
	case v.CephFS != nil:
		return named(v.CephFS.SecretRef)
	case v.Cinder != nil:
		return named(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		return named(v.FlexVolume.SecretRef)
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil && s.Secret.Name != "" })
	case v.RBD != nil:
		return named(v.RBD.SecretRef)
	case v.Secret != nil:
		return v.Secret.SecretName != ""
	case v.ScaleIO != nil:
		return named(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		return named(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		return named(v.StorageOS.SecretRef)
	case v.CSI != nil:
		return named(v.CSI.NodePublishSecretRef)
	}
	return false
}
