// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
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

// run is one injection of a configuration of generation C (source of the order of its steps: injectPod and RunTemplate in
// pkg/kube/inject of Istio 1.9 to 1.31).
type run struct {
	in      *istio.Injector
	profile *istio.Profile
	req     Request
	// written is the pod as the user wrote it, and seen the same as the webhook sees it. Neither must be changed.
	written  map[string]any
	admitted *pod
	// pod is the one that is injected.
	pod *pod
	// before is the pod as the webhook sees it, without the fields that OpenShift sets.
	before *pod
	// shared is a user that OpenShift gave to the application and the pod's own proxy alike.
	shared sharedUser
	// proxyConfig holds for this pod.
	proxyConfig *mesh.ProxyConfig
	// envs are the proxy's variables for cluster and network.
	envs map[string]string
	// injected lists what the templates injected.
	injected injected
	// replaced names the elements that were taken out of the pod's lists for the template's, by list. Istio up to 1.8 does that.
	replaced map[string][]string
	// scraped holds the annotations that locate the proxy's merged metrics.
	scraped  map[string]string
	warnings []string
	// unquoted is the result's.
	unquoted map[string][]string
}

// mergeRenderedTemplates renders the templates and merges them into the pod.
func (r *run) mergeRenderedTemplates(p *pod) error {
	r.pod = p
	r.before = r.admitted
	if r.profile.Has(feature.OpenShiftSharedUser) && onOpenShift(r.in) {
		r.shared = resetSharedUser(p, r.profile)
		r.before = p.deepCopy()
	}
	var err error
	if err = r.findProxyConfig(); err != nil {
		return err
	}
	r.envs = r.in.ClusterVariables(p.labels())
	if err = r.applyTemplates(); err != nil {
		return err
	}
	if err = r.reapplyOverrides(); err != nil {
		return err
	}
	if r.profile.Has(feature.AdjustInitUser) {
		r.adjustInitUser()
	}
	return r.postProcess()
}

func (r *run) findProxyConfig() error {
	pc, warnings, err := r.in.EffectiveProxyConfig(r.podNamespace(), r.pod.labels(), r.pod.annotations())
	if err != nil {
		return &podmap.FieldError{Field: "metadata.annotations[" + r.in.ProxyConfigAnnotation() + "]", Err: err}
	}
	for _, w := range warnings {
		r.warnings = append(r.warnings, "annotation "+r.in.ProxyConfigAnnotation()+": "+w)
	}
	r.proxyConfig = pc
	return nil
}

// podNamespace returns the namespace that the pod will run in, or "" if unknown. Controllers create pods in their own
// namespace, whatever the pod template specifies.
func (r *run) podNamespace() string {
	own, _ := r.pod.meta["namespace"].(string)
	return firstNonEmpty(r.req.Namespace.Name, r.req.Owner.Namespace, own)
}

// newTemplateData returns what the templates see: the pod without what an earlier injection added.
func (r *run) newTemplateData() (*istio.TemplateData, error) {
	stripped, err := removeEarlierInjection(r.in, r.before)
	if err != nil {
		return nil, err
	}
	view, err := withoutNewerFields(r.profile, stripped).decodeTypedPod()
	if err != nil {
		return nil, err
	}
	view.Namespace = r.podNamespace()
	r.req.Controller.addController(&view.ObjectMeta)
	d := &istio.TemplateData{
		TypeMeta:       metav1.TypeMeta{APIVersion: r.req.Owner.APIVersion, Kind: r.req.Owner.Kind},
		ObjectMeta:     view.ObjectMeta,
		Spec:           view.Spec,
		ProxyConfig:    r.proxyConfig,
		MeshConfig:     r.in.Mesh(),
		NativeSidecars: r.in.NativeSidecars(),
	}
	ownerNamespace := r.req.Owner.Namespace
	if ownerNamespace == "" {
		ownerNamespace = r.req.Namespace.Name
	}
	d.DeploymentMeta = r.in.DeploymentMeta(r.req.Owner.Name, ownerNamespace, &view.ObjectMeta)
	d.ProxyUID, d.ProxyGID = r.proxyIDs()
	d.EstimatedConcurrency = r.in.EstimateConcurrency(r.proxyConfig, r.before.annotations())
	return d, nil
}

// applyTemplates renders the pod's templates and merges each over the pod in turn.
func (r *run) applyTemplates() error {
	templates, err := r.in.Select(r.before.annotations())
	if err != nil {
		return &podmap.FieldError{Field: "metadata.annotations[" + istio.TemplatesAnnotationName + "]", Err: err}
	}
	data, err := r.newTemplateData()
	if err != nil {
		return err
	}
	r.unquoted = map[string][]string{}
	for _, t := range templates {
		patch, err := r.renderTemplatePatch(t, data)
		if err != nil {
			return err
		}
		keep := r.profile.Has(feature.InstructedIsAdded)
		if err := r.injected.addTemplatePatch(patch, keep); err != nil {
			return &gotemplate.Error{Template: t.Name(), Err: err}
		}
		r.moveUserProxy()
		if keep {
			podmap.KeepInstructed(podmap.PodSchema(), map[string]any{"metadata": r.pod.meta, "spec": r.pod.spec}, patch)
		}
		if err := r.pod.applyStrategicMerge(patch); errors.As(err, new(*podmap.FieldError)) {
			return err // the pod is what is wrong
		} else if err != nil {
			return &gotemplate.Error{Template: t.Name(), Err: err}
		}
	}
	return r.checkMetadata()
}

// noValue is what text/template prints for a missing value.
var noValue = []byte("<no value>")

// renderTemplatePatch returns the patch that a template prints for the pod.
func (r *run) renderTemplatePatch(t *istio.Template, data *istio.TemplateData) (map[string]any, error) {
	rendered, err := r.in.Render(t, data)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(rendered.Bytes(), noValue) {
		r.warnings = append(r.warnings, fmt.Sprintf("the template %q prints %s, because it reads a value that is not there; check the injector's values", t.Name(), noValue))
	}
	patch, err := decodeOverlay(t.Name(), rendered.Bytes())
	r.in.Release(rendered)
	if err != nil {
		return nil, err
	}
	if err := podmap.FitPatch(podmap.PodSchema(), patch); err != nil {
		return nil, &gotemplate.Error{Template: t.Name(), Err: err}
	}
	r.warnOfController(t)
	r.warnUnquotedAnnotations(t, data, patch)
	if err := r.dropIdentity(t, patch); err != nil {
		return nil, err
	}
	if spec, ok := patch["spec"].(map[string]any); ok {
		for _, key := range []string{containersKey, initContainersKey} {
			list, _ := spec[key].([]any)
			dropNewerFields(r.profile, list)
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
func (r *run) checkMetadata() error {
	for _, key := range metadataKeys {
		if v, ok := r.pod.meta[key]; ok && v == nil {
			delete(r.pod.meta, key)
		}
	}
	return r.pod.validateShape()
}

// isNativeSidecar reports whether the proxy of this pod is an init container, so that a proxy container of the user has
// to move to the init containers.
func (r *run) isNativeSidecar() bool {
	on := r.in.NativeSidecars()
	if r.profile.Has(feature.NativeSidecarAnnotation) {
		switch v, _ := r.pod.annotation(nativeAnnotation); v {
		case "true":
			return true
		case "false":
			return false
		}
	}
	return on
}

// moveUserProxy moves the user's istio-proxy to the init containers if the templates define theirs as one.
func (r *run) moveUserProxy() {
	if !r.profile.Has(feature.NativeSidecars) || !r.isNativeSidecar() || !r.injected.hasContainer(initContainersKey, proxyContainer) {
		return
	}
	containers := r.pod.specListMaps(containersKey)
	own := podmap.Find(containers, proxyContainer)
	if own == nil {
		return
	}
	r.pod.spec[containersKey] = podmap.Without(containers, proxyContainer)
	r.pod.spec[initContainersKey] = append(r.pod.specListMaps(initContainersKey), own)
}

// postProcess does what templates cannot.
func (r *run) postProcess() error {
	r.setClusterEnvs()
	if err := r.mergePrometheus(); err != nil {
		return err
	}
	r.setSecurePort()
	if err := r.rewriteProbes(); err != nil {
		return err
	}
	if err := r.setMetadata(); err != nil {
		return err
	}
	if err := r.reorderContainers(); err != nil {
		return err
	}
	r.setServiceMeshUser()
	r.keepSharedUser()
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
