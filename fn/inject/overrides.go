// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// autoImage is the image of a user's container that means: the one of the template.
const autoImage = "auto"

// overrides are the user's own containers of a name that the templates inject too, as maps.
type overrides struct {
	Containers, InitContainers []any
}

func (o overrides) hasNoContainers() bool {
	return len(o.Containers) == 0 && len(o.InitContainers) == 0
}

// typedOverrides is the JSON of the annotation proxy.istio.io/overrides.
type typedOverrides struct {
	Containers     []corev1.Container `json:"containers,omitempty"`
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
}

// overridesSchema is the schema of the annotation.
var overridesSchema = sync.OnceValue(func() *podmap.Schema { return podmap.SchemaOf(reflect.TypeFor[typedOverrides]()) })

// overridesOf reads the annotation that an earlier injection left, as the webhook does: into Kubernetes' types, with the
// same JSON decoder. So an element that is null is a container without a name, a field that the types do not have is no field,
// and one of another type than theirs is an error (source: reinsertOverrides and reapplyOverwrittenContainers in
// pkg/kube/inject/webhook.go of Istio 1.9 to 1.31).
func overridesOf(p *pod) (overrides, error) {
	text, ok := p.annotation(overridesAnnotation)
	if !ok {
		return overrides{}, nil
	}
	var read typedOverrides
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		if v, notYAML := manifest.Decode([]byte(text)); notYAML == nil {
			if at := podmap.WrongType(overridesSchema(), v, ""); at != nil {
				err = at
				if at.Field == "" {
					err = at.Err
				}
			}
		}
		return overrides{}, &podmap.FieldError{Field: "metadata.annotations[" + overridesAnnotation + "]", Err: err}
	}
	var o overrides
	for _, pair := range []struct {
		from []corev1.Container
		to   *[]any
	}{{read.Containers, &o.Containers}, {read.InitContainers, &o.InitContainers}} {
		for i := range pair.from {
			c, err := containerMap(&pair.from[i])
			if err != nil {
				return overrides{}, &podmap.FieldError{Field: "metadata.annotations[" + overridesAnnotation + "]", Err: err}
			}
			*pair.to = append(*pair.to, c)
		}
	}
	return o, nil
}

// knownOverrides is overridesOf without the fields that a version's Kubernetes types do not have.
func knownOverrides(profile *istio.Profile, p *pod) (overrides, error) {
	o, err := overridesOf(p)
	dropNewerFields(profile, o.Containers, o.InitContainers)
	return o, err
}

// containerMap returns a container as a map with the fields that its JSON has.
func containerMap(c *corev1.Container) (map[string]any, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the container %s: %w", c.Name, err)
	}
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &out); err != nil {
		return nil, fmt.Errorf("reading the container %s: %w", c.Name, err)
	}
	return out, nil
}

// containersForKey returns the containers of one of the pod's lists.
func (o overrides) containersForKey(key string) []any {
	if key == initContainersKey {
		return o.InitContainers
	}
	return o.Containers
}

// reapplyOverrides applies the user's settings for istio-proxy and similar containers over those of the templates,
// and records them in an annotation.
func (r *run) reapplyOverrides() error {
	existing, err := knownOverrides(r.profile, r.before)
	if err != nil {
		return err
	}
	listed, err := r.listedContainers()
	if err != nil {
		return err
	}
	applied := map[string]*[]any{containersKey: {}, initContainersKey: {}}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, name := range r.injected.containerNames(key) {
			own := r.overridingUserContainer(key, name, existing, slices.Contains(listed[key], name))
			if err := r.reapplyUserContainer(key, own, applied[key]); err != nil {
				return err
			}
		}
	}
	all := overrides{Containers: *applied[containersKey], InitContainers: *applied[initContainersKey]}
	if _, before := r.before.annotation(statusAnnotation); before || all.hasNoContainers() {
		return nil
	}
	return r.recordOverrides(all)
}

// foreignStatus reports whether a status annotation on the pod is one that no injection wrote: injected ones were
// removed before. The webhook takes any status annotation for an injection's.
func (r *run) foreignStatus() bool { return r.req.FromOriginal || r.req.KeepListed }

// listedContainers returns the names of the containers that the status annotation lists, by list. The webhook has
// its own way of parsing it, and panics if a list is not a list or contains anything but names; the API server,
// which then gets no answer, rejects the pod (source: parseStatus in pkg/kube/inject/webhook.go of Istio 1.17 to
// 1.31).
func (r *run) listedContainers() (map[string][]string, error) {
	text, ok := r.before.annotation(statusAnnotation)
	if !ok || !r.profile.Has(feature.ListedIsInjected) {
		return nil, nil
	}
	var lists map[string]any
	if json.Unmarshal([]byte(text), &lists) != nil {
		return nil, nil //nolint:nilerr // an unreadable one lists no containers, as in the webhook
	}
	out := map[string][]string{}
	for _, key := range []string{containersKey, initContainersKey} {
		if lists[key] == nil {
			continue
		}
		list, ok := lists[key].([]any)
		for _, e := range list {
			name, isName := e.(string)
			ok = ok && isName
			out[key] = append(out[key], name)
		}
		if !ok {
			return nil, &podmap.FieldError{Field: "metadata.annotations[" + statusAnnotation + "]", Err: fmt.Errorf(
				"%s is not a list of names: istiod panics when it reads this, so the cluster refuses the pod; delete the annotation", key)}
		}
	}
	return out, nil
}

// overridingUserContainer returns the user's container that overrides a template's container of the same name, or nil.
// Containers that an earlier injection added are not the user's. A pod that still has its injection keeps what the
// annotation records, whereas the webhook forgets it (since 1.17) or mistakes what it injected for the user's (up
// to 1.16): injection has to be idempotent.
func (r *run) overridingUserContainer(key, name string, existing overrides, listed bool) map[string]any {
	if r.foreignStatus() && listed {
		return nil
	}
	if own := podmap.Find(existing.containersForKey(key), name); own != nil {
		return own
	}
	was, _ := r.before.readStatusAnnotation()
	switch {
	case key == containersKey && (r.foreignStatus() || !slices.Contains(was.Containers, name)):
		return podmap.Find(r.before.specListMaps(key), name)
	case key == initContainersKey && (r.foreignStatus() || !slices.Contains(was.InitContainers, name)):
		return r.overridingInitContainer(name)
	}
	return nil
}

// overridingInitContainer is the pod's own container that a template's init container of the name overrides. A proxy
// that is native in the template is an ordinary container in the pod.
func (r *run) overridingInitContainer(name string) map[string]any {
	if r.profile.Has(feature.NativeSidecars) {
		if own := podmap.Find(r.before.specListMaps(containersKey), name); own != nil {
			return own
		}
	}
	return podmap.Find(r.before.specListMaps(initContainersKey), name)
}

// reapplyUserContainer merges one container of the user over the pod's.
func (r *run) reapplyUserContainer(key string, own map[string]any, applied *[]any) error {
	if own == nil {
		return nil
	}
	c := podmap.Meant(podmap.ContainerSchema(), own)
	if c["image"] == autoImage {
		delete(c, "image")
	}
	if uid, ok := r.injected.users[fmt.Sprint(c["name"])]; ok && uid != int64(defaultProxyID) && r.profile.Has(feature.DropForeignUser) {
		if sc, ok := c["securityContext"].(map[string]any); ok {
			delete(sc, "runAsUser")
			delete(sc, "runAsGroup")
		}
	}
	canonicalResources(c)
	mine := podmap.CopyMap(c)
	dropNewerFields(r.profile, []any{c})
	*applied = append(*applied, c)
	resetDivisors(mine, podmap.Find(r.pod.specListMaps(key), fmt.Sprint(c["name"])))
	patch := map[string]any{"spec": map[string]any{key: []any{mine}}}
	if err := r.pod.applyStrategicMerge(patch); err != nil {
		return fmt.Errorf("merging the pod's own container %v: %w", c["name"], err)
	}
	return nil
}

// resetDivisors sets the divisor to 0 for variables of the pod's own container that read a resource without a
// divisor, if the merged container has one: Go's types print it, so the template's value does not survive (source:
// applyContainer in pkg/kube/inject/webhook.go of Istio 1.31, Divisor in k8s.io/api/core/v1).
func resetDivisors(own, merged map[string]any) {
	env, _ := own["env"].([]any)
	all, _ := merged["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		mine, has := resourceFieldRef(m)
		others, both := resourceFieldRef(podmap.Find(all, name))
		there := both && others["divisor"] != nil
		switch {
		case has && there && mine["divisor"] == nil:
			mine["divisor"] = "0"
		case has && !there && mine["divisor"] == "0":
			delete(mine, "divisor") // as recorded by an earlier injection; it has no meaning
		}
	}
}

// resourceFieldRef returns the reference to a resource that a variable has, and whether it has one.
func resourceFieldRef(variable map[string]any) (map[string]any, bool) {
	from, _ := variable["valueFrom"].(map[string]any)
	reference, has := from["resourceFieldRef"].(map[string]any)
	return reference, has
}

// canonicalResources writes a container's quantities as Kubernetes does, 3000m as 3 and null as 0. The annotation
// has them in this form, and a second injection, which reads them from the annotation, must not change the pod. In
// a strategic merge patch a null would delete the template's quantity, whereas the webhook merges the typed
// container, whose null is 0 (source: Quantity.UnmarshalJSON in pkg/api/resource/quantity.go of
// k8s.io/apimachinery).
func canonicalResources(c map[string]any) {
	resources, _ := c["resources"].(map[string]any)
	for _, key := range []string{"requests", "limits"} {
		m, _ := resources[key].(map[string]any)
		for name, v := range m {
			if v == nil {
				m[name] = "0"
				continue
			}
			if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
				m[name] = q.String()
			}
		}
	}
}

// recordOverrides writes the annotation from which a second injection reads the user's containers.
func (r *run) recordOverrides(applied overrides) error {
	var out struct {
		Containers     []json.RawMessage `json:"containers,omitempty"`
		InitContainers []json.RawMessage `json:"initContainers,omitempty"`
	}
	for _, list := range []struct {
		from []any
		to   *[]json.RawMessage
	}{{applied.Containers, &out.Containers}, {applied.InitContainers, &out.InitContainers}} {
		for _, e := range list.from {
			m, _ := e.(map[string]any)
			c, err := podmap.TypedContainer(m)
			if err != nil {
				return err
			}
			text, err := json.Marshal(c)
			if err != nil {
				return fmt.Errorf("writing the annotation %s: %w", overridesAnnotation, err)
			}
			*list.to = append(*list.to, r.withExplicitNulls(text, c.Name))
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", overridesAnnotation, err)
	}
	r.pod.setMetadataValue("annotations", overridesAnnotation, string(text))
	return nil
}
