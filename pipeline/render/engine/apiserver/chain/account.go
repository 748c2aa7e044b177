// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/pipeline/render/fields"
)

const (
	accountStep = "ServiceAccount"
	// tokenPath is where pods have the token of their service account.
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path
	// mountableAnnotation has the API server restrict pods to the Secrets of their account.
	mountableAnnotation = "kubernetes.io/enforce-mountable-secrets"
)

// account returns the pod's ServiceAccount, or nil if it is not known.
func (a *Admission) account() (*corev1.ServiceAccount, error) {
	name := a.Pod.Spec.ServiceAccountName
	account := a.cluster.Accounts[a.request.Namespace+"/"+name]
	switch {
	case account != nil:
		return account, nil
	case a.cluster.isComplete("ServiceAccount"):
		return nil, fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", a.request.Namespace, name, name)
	}
	a.lack("ServiceAccount %s/%s: its pull secrets, and whether it mounts its token, are not known", a.request.Namespace, name)
	return nil, nil
}

// applyAccount sets the service account, mounts its token, and adds its pull secrets.
func applyAccount(a *Admission) error {
	spec := &a.Pod.Spec
	if _, mirror := a.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return checkAccount(a)
	}
	detail := "serviceAccountName: " + spec.ServiceAccountName
	done := a.Trace.begin(a, Cause{Step: accountStep})
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName, detail = "default", "no serviceAccountName"
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	a.Trace.cause(Cause{Step: accountStep, Detail: detail})
	done()
	account, err := a.account()
	if err != nil {
		return err
	}
	if account == nil {
		account = &corev1.ServiceAccount{}
	}
	object := "ServiceAccount " + a.request.Namespace + "/" + spec.ServiceAccountName
	if mounts, cause := mountsToken(spec, account, object); mounts {
		done = a.Trace.begin(a, cause)
		mountToken(spec)
		done()
	}
	if len(spec.ImagePullSecrets) == 0 && len(account.ImagePullSecrets) > 0 {
		done = a.Trace.begin(a, Cause{Step: accountStep, Object: object, Path: []any{"imagePullSecrets"}, Detail: "no imagePullSecrets"})
		spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
		done()
	}
	return checkAccount(a)
}

// mountsToken reports whether the pod mounts the token of its account, and what decides it.
func mountsToken(spec *corev1.PodSpec, account *corev1.ServiceAccount, object string) (bool, Cause) {
	const field = "automountServiceAccountToken"
	switch {
	case spec.AutomountServiceAccountToken != nil:
		return *spec.AutomountServiceAccountToken, Cause{Step: accountStep, Detail: field + ": true of the pod"}
	case account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken, Cause{Step: accountStep, Object: object, Path: []any{field}, Detail: field + ": true"}
	}
	return true, Cause{Step: accountStep, Object: object, Detail: "no " + field}
}

// mountToken mounts the token in each container that mounts nothing there.
func mountToken(spec *corev1.PodSpec) {
	name := ""
	if i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, fields.TokenVolume) }); i >= 0 {
		name = spec.Volumes[i].Name
	}
	isNew := name == ""
	if isNew {
		name = fields.TokenVolume + fields.DrawnSuffix
	}
	used := false
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
			used = true
		}
	}
	if used && isNew {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenSource()}})
	}
}

func tokenSource() *corev1.ProjectedVolumeSource {
	mode, seconds := int32(corev1.ProjectedVolumeSourceDefaultMode), int64(3607)
	return &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}}
}

// checkAccount rejects pods that name what their account does not allow.
func checkAccount(a *Admission) error {
	spec := &a.Pod.Spec
	if _, mirror := a.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return checkMirror(spec)
	}
	if spec.ServiceAccountName == "" {
		return fmt.Errorf("no service account specified for pod %s/%s", a.request.Namespace, a.Pod.Name)
	}
	account, err := a.account()
	if account == nil || err != nil {
		return err
	}
	if enforced, _ := strconv.ParseBool(account.Annotations[mountableAnnotation]); enforced {
		return checkSecrets(spec, account)
	}
	return nil
}

// EnforcesSecrets reports whether pods of an account may refer only to the Secrets that it lists.
func EnforcesSecrets(account *corev1.ServiceAccount) bool {
	enforced, _ := strconv.ParseBool(account.Annotations[mountableAnnotation])
	return enforced
}

// checkSecrets rejects Secrets that the account does not list.
func checkSecrets(spec *corev1.PodSpec, account *corev1.ServiceAccount) error {
	allowed := func(name string) bool {
		return slices.ContainsFunc(account.Secrets, func(s corev1.ObjectReference) bool { return s.Name == name })
	}
	for _, v := range spec.Volumes {
		if v.Secret != nil && !allowed(v.Secret.SecretName) {
			return fmt.Errorf("volume with secret.secretName=%q is not allowed because service account %s does not reference that secret", v.Secret.SecretName, account.Name)
		}
	}
	for i, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		kind := []string{"init container", "container"}[i]
		for _, c := range list {
			for _, env := range c.Env {
				if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil && !allowed(env.ValueFrom.SecretKeyRef.Name) {
					return fmt.Errorf("%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
						kind, c.Name, env.Name, env.ValueFrom.SecretKeyRef.Name, account.Name)
				}
			}
			for _, from := range c.EnvFrom {
				if from.SecretRef != nil && !allowed(from.SecretRef.Name) {
					return fmt.Errorf("%s %s with envFrom referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
						kind, c.Name, from.SecretRef.Name, account.Name)
				}
			}
		}
	}
	for i, ref := range spec.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, ref) {
			return fmt.Errorf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, ref.Name, account.Name)
		}
	}
	return nil
}
