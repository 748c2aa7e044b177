// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/manifest"
)

// autoImage is the image of a user's container that means: the one of the template.
const autoImage = "auto"

// overrides are the user's own containers of a name that the templates inject too, as maps.
type overrides struct {
	Containers, InitContainers []any
}

func (o overrides) empty() bool { return len(o.Containers) == 0 && len(o.InitContainers) == 0 }

// typedOverrides is the JSON of the annotation proxy.istio.io/overrides.
type typedOverrides struct {
	Containers     []corev1.Container `json:"containers,omitempty"`
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
}

// overridesOf reads the annotation that an earlier injection left.
func overridesOf(p *pod) (overrides, error) {
	text, ok := p.annotation(overridesAnnotation)
	if !ok {
		return overrides{}, nil
	}
	fail := func(err error) (overrides, error) {
		return overrides{}, &FieldError{Field: "metadata.annotations[" + overridesAnnotation + "]", Err: err}
	}
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		return fail(err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fail(errNotMap)
	}
	var o overrides
	for key, dst := range map[string]*[]any{containersKey: &o.Containers, initContainersKey: &o.InitContainers} {
		list, _ := m[key].([]any)
		if list = slices.Clone(list); list != nil {
			// For Go's types an element that is null is a container without a name.
			m[key] = slices.DeleteFunc(list, func(e any) bool { return e == nil })
		}
		if err := checkMaps(key, m[key]); err != nil {
			return fail(err)
		}
		*dst, _ = m[key].([]any)
	}
	return o, nil
}

// reapplyOverrides puts what the user says about istio-proxy and the like over what the templates say, and remembers it in
// an annotation. Containers that an earlier injection added are not the user's, but those of the annotation are. In this
// a second injection differs from the webhook's, which up to 1.10 takes what it injected for the user's, and since 1.11
// forgets the annotation (parsedInjectedStatus in webhook.go): here it changes nothing.
func (r *run) reapplyOverrides() error {
	existing, err := overridesOf(r.before)
	if err != nil {
		return err
	}
	was, _ := r.before.status()
	var applied overrides
	for _, name := range r.injected.names(containersKey) {
		own := find(existing.Containers, name)
		if own == nil && !slices.Contains(was.Containers, name) {
			own = find(r.before.list(containersKey), name)
		}
		if err := r.reapply(containersKey, own, &applied.Containers); err != nil {
			return err
		}
	}
	for _, name := range r.injected.names(initContainersKey) {
		own := find(existing.InitContainers, name)
		if own == nil && !slices.Contains(was.InitContainers, name) {
			own = r.ownInit(name)
		}
		if err := r.reapply(initContainersKey, own, &applied.InitContainers); err != nil {
			return err
		}
	}
	if _, before := r.before.annotation(statusAnnotation); before || applied.empty() {
		return nil
	}
	return r.recordOverrides(applied)
}

// ownInit is the pod's own container that a template's init container of the name overrides. A proxy that is native in the
// template is an ordinary container in the pod.
func (r *run) ownInit(name string) map[string]any {
	if r.profile.Has(feature.NativeSidecars) {
		if own := find(r.before.list(containersKey), name); own != nil {
			return own
		}
	}
	return find(r.before.list(initContainersKey), name)
}

// reapply merges one container of the user over the pod's.
func (r *run) reapply(key string, own map[string]any, applied *[]any) error {
	if own == nil {
		return nil
	}
	c := meant(containerSchema(), own)
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
	*applied = append(*applied, c)
	mine := copyMap(c)
	resetDivisors(mine, find(r.pod.list(key), fmt.Sprint(c["name"])))
	patch := map[string]any{"spec": map[string]any{key: []any{mine}}}
	if err := r.pod.overlay(patch); err != nil {
		return fmt.Errorf("merging the pod's own container %v: %w", c["name"], err)
	}
	return nil
}

// resetDivisors gives the variables of the pod's own container that read a resource without a divisor the divisor 0, where
// the merged container has one: Go's types print it, so the template's does not hold (source: applyContainer in
// pkg/kube/inject/webhook.go of Istio 1.31, Divisor in k8s.io/api/core/v1).
func resetDivisors(own, merged map[string]any) {
	env, _ := own["env"].([]any)
	all, _ := merged["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		mine, has := resourceFieldRef(m)
		others, both := resourceFieldRef(find(all, name))
		switch there := both && others["divisor"] != nil; {
		case has && there && mine["divisor"] == nil:
			mine["divisor"] = "0"
		case has && !there && mine["divisor"] == "0":
			delete(mine, "divisor") // as an earlier injection noted it, which means nothing
		}
	}
}

// resourceFieldRef returns the reference to a resource that a variable has, and whether it has one.
func resourceFieldRef(variable map[string]any) (map[string]any, bool) {
	from, _ := variable["valueFrom"].(map[string]any)
	reference, has := from["resourceFieldRef"].(map[string]any)
	return reference, has
}

// canonicalResources writes a container's quantities as Kubernetes does, 3000m as 3. The annotation has them so, and a
// second injection, which takes them from there, must not change the pod.
func canonicalResources(c map[string]any) {
	resources, _ := c["resources"].(map[string]any)
	for _, key := range []string{"requests", "limits"} {
		m, _ := resources[key].(map[string]any)
		for name, v := range m {
			if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
				m[name] = q.String()
			}
		}
	}
}

func containerSchema() *schema {
	return podSchema().fields["spec"].schema.fields[containersKey].schema.elem
}

func (r *run) recordOverrides(applied overrides) error {
	var out typedOverrides
	for _, pair := range []struct {
		from []any
		to   *[]corev1.Container
	}{{applied.Containers, &out.Containers}, {applied.InitContainers, &out.InitContainers}} {
		for _, e := range pair.from {
			m, _ := e.(map[string]any)
			c, err := typedContainer(m)
			if err != nil {
				return err
			}
			*pair.to = append(*pair.to, *c)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", overridesAnnotation, err)
	}
	r.pod.set("annotations", overridesAnnotation, string(text))
	return nil
}
