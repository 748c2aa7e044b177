// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
)

// cluster is what the items reveal about the cluster that they will live in.
type cluster struct {
	// namespaces holds the Namespace objects by name, without duplicates.
	namespaces map[string][]clusterObject
	// configMaps are those that could be an injector's or a mesh's configuration.
	configMaps []clusterObject
	// proxyConfigs are Istio's ProxyConfig resources.
	proxyConfigs []map[string]any
	// webhooks are MutatingWebhookConfigurations.
	webhooks []map[string]any
	// locks are ImageLock objects.
	locks []map[string]any
	// accounts are the ServiceAccounts by namespace and name, as they are written.
	accounts map[accountKey]inject.Account
	// limits are the LimitRanges by namespace, as it is written.
	limits map[string][]namedLimits
	// decides reports whether objects exist that rules of every injection read beside the pods, such as LimitRanges.
	decides bool
	// planes are the versions of the istiods.
	planes []string
}

// accountKey is the place of a ServiceAccount.
type accountKey struct{ namespace, name string }

// namedLimits is a LimitRange with its name.
type namedLimits struct {
	name string
	admission.LimitRange
}

// clusterObject is an object together with its unit.
type clusterObject struct {
	unit *documentUnit
	obj  map[string]any
}

// readCluster reads the few objects among the units that matter to others. It does not decode the rest.
func readCluster(units []*documentUnit) *cluster {
	s := &cluster{namespaces: map[string][]clusterObject{}, accounts: map[accountKey]inject.Account{}, limits: map[string][]namedLimits{}}
	for _, u := range units {
		s.decides = s.decides || lint.Decides(u.meta.APIVersion, u.meta.Kind)
		if u.broken || !isClusterObject(u.meta) {
			continue
		}
		if u.meta.Kind == "ServiceAccount" && !u.doc.Contains("imagePullSecrets") {
			s.accounts[accountKey{u.meta.Namespace, u.meta.Name}] = inject.Account{Known: true}
			continue
		}
		obj, err := u.doc.Object()
		if err != nil {
			u.addError("", err)
			u.broken = true
			continue
		}
		s.addClusterObject(u, obj)
	}
	return s
}

// isClusterObject reports whether an object of this kind matters to others.
func isClusterObject(m manifest.Meta) bool {
	switch m.Kind {
	case "Deployment":
		return lint.MayBeControlPlane(m.Kind, m.Name)
	case "Namespace":
		return m.APIVersion == "v1"
	case "ConfigMap":
		return m.APIVersion == "v1" && (strings.HasPrefix(m.Name, injectorConfigMap) || strings.HasPrefix(m.Name, meshConfigMap))
	case "ProxyConfig":
		return strings.HasPrefix(m.APIVersion, "networking.istio.io/")
	case "MutatingWebhookConfiguration":
		return strings.HasPrefix(m.APIVersion, "admissionregistration.k8s.io/")
	case "ServiceAccount", "LimitRange":
		return m.APIVersion == "v1"
	case "ImageLock":
		return strings.HasPrefix(m.APIVersion, "prerig.dev/")
	}
	return false
}

// isConstraint reports whether an object limits what the pods of its namespace ask for.
func isConstraint(m manifest.Meta) bool {
	return m.APIVersion == "v1" && (m.Kind == "LimitRange" || m.Kind == "ResourceQuota")
}

func (s *cluster) addClusterObject(u *documentUnit, obj map[string]any) {
	switch u.meta.Kind {
	case "Deployment":
		if version, ok := lint.ControlPlane(obj); ok {
			s.planes = append(s.planes, version)
		}
	case "Namespace":
		s.addNamespace(clusterObject{u, obj})
	case "ConfigMap":
		s.configMaps = append(s.configMaps, clusterObject{u, obj})
	case "ProxyConfig":
		s.proxyConfigs = append(s.proxyConfigs, obj)
	case "MutatingWebhookConfiguration":
		s.webhooks = append(s.webhooks, obj)
	case "ServiceAccount":
		s.accounts[accountKey{u.meta.Namespace, u.meta.Name}] = readServiceAccount(obj)
	case "LimitRange":
		s.limits[u.meta.Namespace] = append(s.limits[u.meta.Namespace], namedLimits{u.meta.Name, admission.NewLimitRange(obj)})
	case "ImageLock":
		s.locks = append(s.locks, obj)
	}
}

// readServiceAccount reads a ServiceAccount.
func readServiceAccount(obj map[string]any) inject.Account {
	out := inject.Account{Known: true}
	list, _ := obj["imagePullSecrets"].([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		if name, _ := m["name"].(string); name != "" {
			out.PullSecrets = append(out.PullSecrets, name)
		}
	}
	return out
}

// addNamespace notes a Namespace. A repository that serves several clusters has the same one many times, and mostly with the
// same labels.
func (s *cluster) addNamespace(f clusterObject) {
	name := f.unit.meta.Name
	f.unit.readOrigin(f.obj)
	annotations := func(f clusterObject) map[string]string {
		out := f.metadataStringMap("annotations")
		maps.DeleteFunc(out, func(key, _ string) bool { return isOrchestrators(key) })
		return out
	}
	same := func(other clusterObject) bool {
		return maps.Equal(f.metadataStringMap("labels"), other.metadataStringMap("labels")) && maps.Equal(annotations(f), annotations(other))
	}
	if name != "" && !slices.ContainsFunc(s.namespaces[name], same) {
		s.namespaces[name] = append(s.namespaces[name], f)
	}
}

// metadataStringMap returns the labels or the annotations of an object.
func (f clusterObject) metadataStringMap(key string) map[string]string {
	meta, _ := f.obj["metadata"].(map[string]any)
	return stringMap(meta[key])
}

// namespaceNames returns the names in order.
func (s *cluster) namespaceNames() []string { return slices.Sorted(maps.Keys(s.namespaces)) }

// The ConfigMaps of a control plane; those of a revision have "-REVISION" behind the name.
const (
	injectorConfigMap = "istio-sidecar-injector"
	meshConfigMap     = "istio"
)

// configMap returns the ConfigMap of a name and a namespace, where an empty namespace means any. It fails where several fit.
func (s *cluster) configMap(name, namespace string) (*clusterObject, error) {
	var fit []*clusterObject
	for i := range s.configMaps {
		m := s.configMaps[i].unit.meta
		if m.Name == name && (namespace == "" || m.Namespace == namespace) {
			fit = append(fit, &s.configMaps[i])
		}
	}
	switch len(fit) {
	case 0:
		return nil, nil
	case 1:
		return fit[0], nil
	}
	places := make([]string, len(fit))
	for i, f := range fit {
		places[i] = f.unit.resourceReference().String()
	}
	return nil, fmt.Errorf("finding the ConfigMap %s among the items: there are %d (%s); name the namespace in injector.configMap", name, len(fit), strings.Join(places, ", "))
}

// configMapValue returns a key of a ConfigMap's data.
func (f *clusterObject) configMapValue(key string) string {
	data, _ := f.obj["data"].(map[string]any)
	text, _ := data[key].(string)
	return text
}

// describeSource describes where an object is, for people.
func (f clusterObject) describeSource() string {
	if file := f.unit.fileLocation(); file != nil && file.Line > 0 {
		return fmt.Sprintf("%s:%d", file.Path, file.Line)
	} else if file != nil {
		return file.Path
	}
	return "the items"
}

// imageLocks returns the lock of a name; none for an empty name.
func (s *cluster) imageLocks(name string) ([]*v1alpha1.ImageLock, error) {
	if name == "" {
		return nil, nil
	}
	for _, obj := range s.locks {
		lock, err := v1alpha1.ImageLockFromObject(obj)
		if err != nil {
			return nil, err
		}
		if lock.Metadata.Name == name {
			return []*v1alpha1.ImageLock{lock}, nil
		}
	}
	return nil, fmt.Errorf("finding the ImageLock %s among the items: there is none of that name; write it with prerig images pin, and keep it among the manifests (for prerig inject, beside the policy)", name)
}
