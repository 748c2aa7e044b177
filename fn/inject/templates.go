// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/podmap"
)

// Annotations that the injection itself reads.
const (
	statusAnnotation    = "sidecar.istio.io/status"
	overridesAnnotation = "proxy.istio.io/overrides"
	nativeAnnotation    = "sidecar.istio.io/nativeSidecar"
)

// mergeRenderedTemplates injects a configuration of generation C: it renders the templates and merges them into the pod
// (source of the order of its steps: injectPod and RunTemplate in pkg/kube/inject of Istio 1.9 to 1.31).
func (r *run) mergeRenderedTemplates(p *pod) error {
	profile := r.in.Profile()
	r.before = r.admitted
	shared := sharedUser{}
	if profile.Has(feature.OpenShiftSharedUser) && onOpenShift(r.in) {
		shared = resetSharedUser(p, profile)
		r.before = p.deepCopy()
	}
	proxyConfig, err := r.findProxyConfig(p)
	if err != nil {
		return err
	}
	envs := r.in.ClusterVariables(p.labels())
	added, err := r.applyTemplates(p, proxyConfig)
	if err != nil {
		return err
	}
	own, err := r.findUserContainers()
	if err != nil {
		return err
	}
	if err := r.reapplyOverrides(p, own, added); err != nil {
		return err
	}
	if profile.Has(feature.AdjustInitUser) {
		adjustInitUser(p, own.originalProxy(), proxyConfig)
	}
	if err := r.postProcess(p, added, envs); err != nil {
		return err
	}
	shared.restoreUser(p, &r.warnings)
	return nil
}

// findProxyConfig returns the proxy config that holds for the pod.
func (r *run) findProxyConfig(p *pod) (*mesh.ProxyConfig, error) {
	pc, doubts, err := r.in.EffectiveProxyConfig(r.req.podNamespace(p), p.labels(), p.annotations())
	if err != nil {
		return nil, &podmap.FieldError{Field: "metadata.annotations[" + r.in.Profile().ProxyConfigAnnotation() + "]", Err: err}
	}
	for _, doubt := range doubts {
		r.warnings.addf("annotation %s: %s", r.in.Profile().ProxyConfigAnnotation(), doubt)
	}
	return pc, nil
}

// podNamespace returns the namespace that the pod will run in, or "" if unknown. Controllers create pods in their own
// namespace, whatever the pod template specifies.
func (r *Request) podNamespace(p *pod) string {
	own, _ := p.meta["namespace"].(string)
	return cmp.Or(r.Namespace.Name, r.Owner.Namespace, own)
}

// newTemplateData returns what the templates see: the pod without what an earlier injection added.
func (r *run) newTemplateData(proxyConfig *mesh.ProxyConfig) (*istio.TemplateData, error) {
	stripped, err := removeEarlierInjection(r.in, r.before)
	if err != nil {
		return nil, err
	}
	view, err := withoutNewerFields(r.in.Profile(), stripped).decodeTypedPod()
	if err != nil {
		return nil, err
	}
	view.Namespace = r.req.podNamespace(r.before)
	r.req.Controller.addController(&view.ObjectMeta)
	owner := r.req.Owner
	d := &istio.TemplateData{
		TypeMeta:       metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind},
		ObjectMeta:     view.ObjectMeta,
		Spec:           view.Spec,
		ProxyConfig:    proxyConfig,
		MeshConfig:     r.in.Mesh(),
		NativeSidecars: r.in.NativeSidecars(),
	}
	d.DeploymentMeta = r.in.Profile().DeploymentMeta(owner.Name, cmp.Or(owner.Namespace, r.req.Namespace.Name), &view.ObjectMeta)
	d.ProxyUID, d.ProxyGID = r.proxyIDs()
	d.EstimatedConcurrency = r.in.EstimateConcurrency(proxyConfig, r.before.annotations())
	return d, nil
}

// applyTemplates renders the pod's templates and merges each over the pod in turn. It returns what they inject.
func (r *run) applyTemplates(p *pod, proxyConfig *mesh.ProxyConfig) (*injected, error) {
	templates, err := r.in.Select(r.before.annotations())
	if err != nil {
		return nil, &podmap.FieldError{Field: "metadata.annotations[" + istio.TemplatesAnnotationName + "]", Err: err}
	}
	data, err := r.newTemplateData(proxyConfig)
	if err != nil {
		return nil, err
	}
	added := &injected{}
	r.unquoted = map[string][]string{}
	for _, t := range templates {
		patch, err := r.renderTemplatePatch(t, data, p)
		if err != nil {
			return nil, err
		}
		keep := r.in.Profile().Has(feature.InstructedIsAdded)
		if err := added.addTemplatePatch(patch, keep); err != nil {
			return nil, &gotemplate.Error{Template: t.Name(), Err: err}
		}
		if isNativeSidecar(r.in, p) && added.hasContainer(initContainersKey, proxyContainer) {
			moveUserProxy(p)
		}
		if keep {
			podmap.KeepInstructed(podmap.PodSchema(), map[string]any{"metadata": p.meta, "spec": p.spec}, patch)
		}
		if err := p.applyStrategicMerge(patch); errors.As(err, new(*podmap.FieldError)) {
			return nil, err // the pod is what is wrong
		} else if err != nil {
			return nil, &gotemplate.Error{Template: t.Name(), Err: err}
		}
	}
	return added, checkMetadata(p)
}

// noValue is what text/template prints for a missing value.
var noValue = []byte("<no value>")

// renderTemplatePatch returns the patch that a template prints for the pod. p is the pod as the templates before it
// left it.
func (r *run) renderTemplatePatch(t *istio.Template, data *istio.TemplateData, p *pod) (map[string]any, error) {
	rendered, err := r.in.Render(t, data)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(rendered.Bytes(), noValue) {
		r.warnings.addf("the template %q prints %s, because it reads a value that is not there; "+
			"check the injector's values", t.Name(), noValue)
	}
	patch, err := decodeOverlay(t.Name(), rendered.Bytes())
	r.in.Release(rendered)
	if err != nil {
		return nil, err
	}
	if err := podmap.FitPatch(podmap.PodSchema(), patch); err != nil {
		return nil, &gotemplate.Error{Template: t.Name(), Err: err}
	}
	warnOfController(t, r.req.Controller, &r.warnings)
	addUnquoted(r.unquoted, r.in, t, data, patch)
	if err := dropIdentity(t, patch, p, r.req.podNamespace(p), &r.warnings); err != nil {
		return nil, err
	}
	if spec, ok := patch["spec"].(map[string]any); ok {
		for _, key := range []string{containersKey, initContainersKey} {
			list, _ := spec[key].([]any)
			dropNewerFields(r.in.Profile(), list)
		}
	}
	if r.in.Detection().Version.Release().Known() {
		dropUnknown(podmap.PodSchema(), patch)
	}
	return patch, nil
}

// dropUnknown removes fields unknown to Kubernetes from a template's patch, as istiod does when it decodes the
// merged pod into its types. The templates of Istio 1.9 to 1.15 set fsGroup on their containers: the API server
// would drop it with a warning, and kubectl rejects the workload for it.
func dropUnknown(s *podmap.Schema, patch map[string]any) {
	for key, v := range patch {
		f := s.Field(key)
		if f == nil {
			if s.Kind == podmap.StructKind && !strings.HasPrefix(key, "$") { // $patch and the like are merge directives.
				delete(patch, key)
			}
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			if f.Schema.Kind == podmap.StructKind {
				dropUnknown(f.Schema, v)
			}
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok && f.Schema.Kind == podmap.ListKind && f.Schema.Elem.Kind == podmap.StructKind {
					dropUnknown(f.Schema.Elem, m)
				}
			}
		}
	}
}

// checkMetadata verifies that a template has only set maps in the pod's metadata.
func checkMetadata(p *pod) error {
	for _, key := range metadataKeys {
		if v, ok := p.meta[key]; ok && v == nil {
			delete(p.meta, key)
		}
	}
	return p.validateShape()
}

// isNativeSidecar reports whether the proxy of this pod is an init container, so that a proxy container of the user has
// to move to the init containers.
func isNativeSidecar(in *istio.Injector, p *pod) bool {
	if !in.Profile().Has(feature.NativeSidecars) {
		return false
	}
	if in.Profile().Has(feature.NativeSidecarAnnotation) {
		switch v, _ := p.annotation(nativeAnnotation); v {
		case "true":
			return true
		case "false":
			return false
		}
	}
	return in.NativeSidecars()
}

// moveUserProxy moves the user's istio-proxy to the init containers.
func moveUserProxy(p *pod) {
	containers := p.specListMaps(containersKey)
	own := podmap.Find(containers, proxyContainer)
	if own == nil {
		return
	}
	p.spec[containersKey] = podmap.Without(containers, proxyContainer)
	p.spec[initContainersKey] = append(p.specListMaps(initContainersKey), own)
}

// postProcess does what templates cannot.
func (r *run) postProcess(p *pod, added *injected, envs map[string]string) error {
	setClusterEnvs(injectedProxyContainer(r.in, p), envs)
	if _, err := mergePrometheus(r.in, p, &r.warnings); err != nil {
		return err
	}
	setSecurePort(r.in, p)
	if err := rewriteProbes(r.in, p, &r.warnings); err != nil {
		return err
	}
	if err := setMetadata(r.in, p, added, envs); err != nil {
		return err
	}
	hold, err := holdsApplicationStart(r.in, r.before)
	if err != nil {
		return err
	}
	reorderContainers(p, hold, r.in.Profile().Has(feature.NativeSidecars))
	if r.in.Detection().IsServiceMesh() {
		uid, _ := serviceMeshIDs(r.before, r.req.Namespace)
		setServiceMeshUser(p, uid)
	}
	return nil
}

// injected lists the names of what the templates inject, as the status annotation has them.
type injected struct {
	pod map[string]any
	// users are the users that the templates set, by container.
	users map[string]any
}

// injectedKeys are the lists that count.
var injectedKeys = []string{initContainersKey, containersKey, "volumes", "imagePullSecrets"}

// elementOrder is the prefix of strategic merge patch keys that set the order of a list.
const elementOrder = "$setElementOrder/"

// addTemplatePatch merges one template's patch into the list. It does not modify the patch. If keep is set, elements
// with a directive are added even if the directive has no target.
func (i *injected) addTemplatePatch(patch map[string]any, keep bool) error {
	spec, _ := patch["spec"].(map[string]any)
	next := map[string]any{}
	for _, key := range injectedKeys {
		if list, ok := spec[key].([]any); ok {
			next[key] = namesAndDirectives(list)
			i.recordTemplateUsers(list)
		}
		if order, ok := spec[elementOrder+key]; ok {
			next[elementOrder+key] = podmap.CopyValue(order)
		}
	}
	for _, directive := range []string{"$patch", "$retainKeys"} {
		if v, ok := spec[directive]; ok {
			next[directive] = podmap.CopyValue(v)
		}
	}
	if keep {
		podmap.KeepInstructed(podmap.PodSchema().Field("spec").Schema, i.pod, next)
	}
	if i.pod == nil && !hasPatchDirective(next) {
		i.pod = next
		return nil
	}
	if i.pod == nil {
		i.pod = map[string]any{}
	}
	if _, ordered := next[elementOrder+containersKey]; ordered && i.pod[containersKey] == nil {
		// The JSON of a pod without containers has a null at this key, on which the merge fails in the webhook.
		i.pod[containersKey] = nil
	}
	p := &pod{meta: map[string]any{}, spec: i.pod}
	if err := p.applyStrategicMerge(map[string]any{"spec": next}); err != nil {
		return fmt.Errorf("listing what it injects: %w", err)
	}
	i.pod = p.spec
	return nil
}

// recordTemplateUsers notes which users a template sets.
func (i *injected) recordTemplateUsers(list []any) {
	for _, e := range list {
		c, _ := e.(map[string]any)
		name, _ := c["name"].(string)
		if uid, ok := securityContextField(c, "runAsUser"); ok {
			if i.users == nil {
				i.users = map[string]any{}
			}
			i.users[name] = uid
		}
	}
}

// hasPatchDirective reports whether one of the lists has an instruction of a strategic merge patch.
func hasPatchDirective(lists map[string]any) bool {
	for key, v := range lists {
		if key[0] == podmap.DirectivePrefix {
			return true
		}
		list, _ := v.([]any)
		for _, e := range list {
			m, _ := e.(map[string]any)
			if _, named := m["name"]; len(m) != 1 || !named {
				return true
			}
		}
	}
	return false
}

// namesAndDirectives returns the elements of a list reduced to their names and instructions.
func namesAndDirectives(list []any) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		stub := map[string]any{}
		for k, v := range m {
			if k == "name" || k != "" && k[0] == podmap.DirectivePrefix {
				stub[k] = v
			}
		}
		out = append(out, stub)
	}
	return out
}

// containerNames returns the names in one of the lists.
func (i *injected) containerNames(key string) []string {
	list, _ := i.pod[key].([]any)
	return podmap.Names(list)
}

func (i *injected) hasContainer(key, name string) bool {
	list, _ := i.pod[key].([]any)
	return podmap.Find(list, name) != nil
}
