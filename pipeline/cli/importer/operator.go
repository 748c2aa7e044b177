// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/fn/podmap"
)

// The kinds that ask for an installation: istioctl's, and that of the Sail operator.
const (
	operatorKind, operatorGroup = "IstioOperator", "install.istio.io"
	sailKind, sailGroup         = "Istio", "sailoperator.io"
)

// operatorBuilder makes a policy of a document that asks for an installation: the built-in policy with what the
// document changes. Sources: operator/pkg/render/manifest.go and manifests/ of Istio 1.31, pkg/istiovalues of the Sail
// operator.
type operatorBuilder struct {
	*policyBuilder
	object *clusterObject
	// base is the built-in policy that is changed.
	base *v1alpha1.Istio
	// baseValues are its values.
	baseValues map[string]any
	// values are the chart's, as far as the document and its profile set them.
	values map[string]any
	// env is the environment of istiod.
	env map[string]string
	// version is the one that the document or the options name, if any.
	version string
	// leftOut are fields that do not reach injected pods.
	leftOut []string
}

// findInstallation returns the document that requests the installation of a revision, or nil if none does.
func findInstallation(all []*clusterObject, opts Options) (*clusterObject, error) {
	var found []*clusterObject
	for _, o := range all {
		group, _, _ := strings.Cut(podmap.TextAt(o.Value, "apiVersion"), "/")
		if o.kind == operatorKind && group == operatorGroup || o.kind == sailKind && group == sailGroup {
			found = append(found, o)
		}
	}
	if len(found) > 1 && opts.Revision != "" {
		found = slices.DeleteFunc(found, func(o *clusterObject) bool {
			return o.kind == operatorKind && firstText(podmap.ValueAt(o.Value, "spec", "revision"), defaultRevision) != opts.Revision || o.kind == sailKind && o.name != opts.Revision
		})
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("importing: %s and %s both define a control plane; import one of them, or choose one with --revision", found[0], found[1])
}

// operatorPolicy fills in the policy from the document.
func (b *policyBuilder) operatorPolicy(object *clusterObject, all []*clusterObject, opts Options) error {
	o := &operatorBuilder{policyBuilder: b, object: object, env: map[string]string{}, version: opts.Version}
	if err := o.readBase(istio.Version{Minor: builtin.DefaultMinor, Patch: -1}); err != nil {
		return err
	}
	read := o.readOperator
	if object.kind == sailKind {
		read = func() error { return o.readSail(opts) }
	}
	if err := read(); err != nil {
		return err
	}
	if err := o.checkVersion(); err != nil {
		return err
	}
	if err := o.setIstio(); err != nil {
		return err
	}
	b.setKubeletVersion(all, opts)
	b.setNamespaces(all)
	b.noteSecrets(all)
	o.addNotes()
	return nil
}

// readBase reads the built-in policy for a version.
func (o *operatorBuilder) readBase(v istio.Version) error {
	p, err := v1alpha1.Parse(builtin.Policy(v))
	if err != nil {
		return fmt.Errorf("reading the built-in policy %s: %w", meshName, err)
	}
	o.base = p.Spec.Istio
	values, err := istio.ParseValues(o.base.Injector.Values, nil)
	if err != nil {
		return fmt.Errorf("reading the built-in policy %s: %w", meshName, err)
	}
	o.baseValues = values
	return nil
}

// errorAtField is an error about a field of the document, with its line.
func (o *operatorBuilder) errorAtField(field []string, format string, args ...any) error {
	return fmt.Errorf("importing %s: %s: %s", o.object.referenceWithoutPlace(), o.placeText(field),
		fmt.Sprintf(format, args...))
}

// placeText returns the field's path with the file and the line of the nearest existing field.
func (o *operatorBuilder) placeText(field []string) string {
	line := o.object.Line
	if o.object.Document != nil {
		path := make([]any, len(field))
		for i, key := range field {
			path[i] = key
		}
		for n := len(path); n > 0; n-- {
			if at, _, ok := o.object.Document.Locate(path[:n]...); ok {
				line = at
				break
			}
		}
	}
	return fmt.Sprintf("%s (%s:%d)", strings.Join(field, "."), o.object.Path, line)
}

// referenceWithoutPlace names the object without its place.
func (o *clusterObject) referenceWithoutPlace() string {
	return strings.TrimSpace(o.kind + " " + o.name)
}

// checkVersion reads the built-in policy of the document's version, and refuses a version that it does not cover.
func (o *operatorBuilder) checkVersion() error {
	field := []string{"spec", "tag"}
	if o.object.kind == sailKind {
		field = []string{"spec", "version"}
	}
	want, _ := istio.ParseVersion(o.base.Version)
	if o.version == "" {
		o.addWarning("%s does not contain the version of Istio: the policy is for %s, like the built-in one; set another with --istio-version", o.object.referenceWithoutPlace(), want)
		return nil
	}
	got, ok := istio.ParseVersion(o.version)
	if !ok {
		o.addWarning("%s: %q is not a version of Istio, so the policy is for %s; set another with --istio-version",
			o.placeText(field), o.version, want)
		return nil
	}
	if builtin.Covers(got) {
		return o.readBase(got)
	}
	render := "istioctl manifest generate -f FILE | prerig import, with the istioctl of that version"
	if o.object.kind == sailKind {
		render = "kubectl -n NAMESPACE get configmaps,mutatingwebhookconfigurations,deployments -o yaml | prerig import"
	}
	return o.errorAtField(field, "the version is %s, and the built-in policy covers %s; import the installed objects: %s", got, builtin.Covered(), render)
}

// addNotes reports the parts of the document that the policy omits.
func (o *operatorBuilder) addNotes() {
	if podmap.ValueAt(o.values, "global", "tag") == nil || podmap.ValueAt(o.values, "global", "hub") == nil {
		o.addNote("%s does not set both the hub and the tag of the images; the built-in policy's are used for the rest: %v and %v", o.object.referenceWithoutPlace(),
			podmap.ValueAt(o.baseValues, "global", "hub"), podmap.ValueAt(o.baseValues, "global", "tag"))
	}
	if len(o.leftOut) > 0 {
		slices.Sort(o.leftOut)
		o.addNote("skipped, because injected pods do not depend on it: %s",
			strings.Join(slices.Compact(o.leftOut), ", "))
	}
	disabled := o.spec.Istio.NativeSidecars == v1alpha1.NativeSidecarsDisabled || o.spec.Istio.IstiodEnv["ENABLE_NATIVE_SIDECARS"] == "false"
	if o.base.KubernetesVersion != "" && o.spec.Istio.KubernetesVersion == "" && !disabled {
		o.addNote("the input has no Node: kubelets of Kubernetes %s or newer are assumed, which makes the proxy a native sidecar; "+
			"set spec.istio.kubernetesVersion for older ones", o.base.KubernetesVersion)
	}
}
