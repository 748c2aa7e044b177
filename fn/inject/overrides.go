// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
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
		if errors.As(err, new(*json.SyntaxError)) {
			err = fmt.Errorf("it is not valid JSON: %w; write an object such as {\"containers\":[{\"name\":\"istio-proxy\",\"image\":\"IMAGE\"}]}", err)
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
func (r *run) reapplyOverrides(p *pod, own *userContainers, added *injected) error {
	applied := map[string][]any{}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, name := range added.containerNames(key) {
			override := own.override(key, name)
			if override == nil {
				continue
			}
			c, err := reapplyUserContainer(r.in.Profile(), p, key, override, added.users)
			if err != nil {
				return err
			}
			applied[key] = append(applied[key], c)
		}
	}
	all := overrides{Containers: applied[containersKey], InitContainers: applied[initContainersKey]}
	if _, before := r.before.annotation(statusAnnotation); before || all.hasNoContainers() {
		return nil
	}
	var written map[string]any
	if r.req.RecordNulls {
		written = r.written
	}
	text, err := marshalOverrides(all, written)
	if err != nil {
		return err
	}
	p.setMetadataValue("annotations", overridesAnnotation, text)
	return nil
}

// userContainers finds the user's own containers in a pod before it is injected.
type userContainers struct {
	pod *pod
	// recorded are those of the annotation that an earlier injection left.
	recorded overrides
	status   status
	// listed are the names that the webhook reads in the status annotation, by list.
	listed map[string][]string
	// injected reports whether there is a status annotation, and foreign whether it is one that no injection wrote:
	// injected ones were removed before. The webhook takes any status annotation for an injection's.
	injected, foreign bool
	// native reports whether the version has native sidecars.
	native bool
}

func (r *run) findUserContainers() (*userContainers, error) {
	recorded, err := knownOverrides(r.in.Profile(), r.before)
	if err != nil {
		return nil, err
	}
	u := &userContainers{pod: r.before, recorded: recorded, native: r.in.Profile().Has(feature.NativeSidecars)}
	u.foreign = r.req.FromOriginal || r.req.KeepListed
	u.status, u.injected = r.before.readStatusAnnotation()
	if r.in.Profile().Has(feature.ListedIsInjected) {
		u.listed, err = listedContainers(r.before)
	}
	return u, err
}

// listedContainers returns the names of the containers that the status annotation lists, by list. The webhook has
// its own way of parsing it, and panics if a list is not a list or contains anything but names; the API server,
// which then gets no answer, rejects the pod (source: parseStatus in pkg/kube/inject/webhook.go of Istio 1.17 to
// 1.31).
func listedContainers(p *pod) (map[string][]string, error) {
	text, _ := p.annotation(statusAnnotation)
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

// override returns the user's container that overrides a template's container of the same name, or nil.
// Containers that an earlier injection added are not the user's. A pod that still has its injection keeps what the
// annotation records, whereas the webhook forgets it (since 1.17) or mistakes what it injected for the user's (up
// to 1.16): injection has to be idempotent. A proxy that is native in the template is an ordinary container in the pod.
func (u *userContainers) override(key, name string) map[string]any {
	if u.foreign && slices.Contains(u.listed[key], name) {
		return nil
	}
	if own := podmap.Find(u.recorded.containersForKey(key), name); own != nil {
		return own
	}
	if !u.foreign && slices.Contains(u.status.containersForKey(key), name) {
		return nil
	}
	if key == initContainersKey && u.native {
		if own := podmap.Find(u.pod.specListMaps(containersKey), name); own != nil {
			return own
		}
	}
	return podmap.Find(u.pod.specListMaps(key), name)
}

// originalProxy returns the istio-proxy of the pod before injection (source: adjustInitContainerUser in
// pkg/kube/inject/webhook.go of Istio 1.31), or nil. In a pod that is injected a second time it is the user's own:
// the one that the first injection recorded, or otherwise one that the status annotation does not list.
func (u *userContainers) originalProxy() map[string]any {
	if !u.injected || u.foreign {
		return u.pod.findProxyContainer(true)
	}
	keys := []string{containersKey, initContainersKey}
	for _, key := range keys {
		if own := podmap.Find(u.recorded.containersForKey(key), proxyContainer); own != nil {
			return own
		}
	}
	for _, key := range keys {
		own := podmap.Find(u.pod.specListMaps(key), proxyContainer)
		if own != nil && !slices.Contains(u.status.containersForKey(key), proxyContainer) {
			return own
		}
	}
	return nil
}

// reapplyUserContainer merges one container of the user over the pod's, and returns it as it is recorded. users are the
// users that the templates set, by container.
func reapplyUserContainer(
	profile *istio.Profile, p *pod, key string, own, users map[string]any,
) (map[string]any, error) {
	c := podmap.Meant(podmap.ContainerSchema(), own)
	if c["image"] == autoImage {
		delete(c, "image")
	}
	uid, ok := users[fmt.Sprint(c["name"])]
	if ok && uid != int64(defaultProxyID) && profile.Has(feature.DropForeignUser) {
		if sc, ok := c["securityContext"].(map[string]any); ok {
			delete(sc, "runAsUser")
			delete(sc, "runAsGroup")
		}
	}
	canonicalResources(c)
	mine := podmap.CopyMap(c)
	dropNewerFields(profile, []any{c})
	resetDivisors(mine, podmap.Find(p.specListMaps(key), fmt.Sprint(c["name"])))
	patch := map[string]any{"spec": map[string]any{key: []any{mine}}}
	if err := p.applyStrategicMerge(patch); err != nil {
		return nil, fmt.Errorf("merging the pod's own container %v: %w", c["name"], err)
	}
	return c, nil
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
			if q, err := quantity.Parse(fmt.Sprint(v)); err == nil {
				m[name] = q.String()
			}
		}
	}
}

// marshalOverrides returns the annotation from which a second injection reads the user's containers, with the null
// fields of the pod as the user wrote it, which may be nil.
func marshalOverrides(applied overrides, written map[string]any) (string, error) {
	lists := map[string][]json.RawMessage{}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range applied.containersForKey(key) {
			m, _ := e.(map[string]any)
			c, err := podmap.TypedContainer(m)
			if err != nil {
				return "", err
			}
			text, err := json.Marshal(c)
			if err != nil {
				return "", fmt.Errorf("writing the annotation %s: %w", overridesAnnotation, err)
			}
			lists[key] = append(lists[key], withExplicitNulls(text, c.Name, written))
		}
	}
	text, err := json.Marshal(lists)
	if err != nil {
		return "", fmt.Errorf("writing the annotation %s: %w", overridesAnnotation, err)
	}
	return string(text), nil
}
