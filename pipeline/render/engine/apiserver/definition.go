// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitionvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// definition is a CustomResourceDefinition.
type definition struct {
	name       string
	namespaced bool
	scopeless  bool // of the catalogue, which does not have the scope
	preserve   bool
	webhook    bool // converts between the versions
	plural     string
	versions   map[string]*definedVersion
	object     gate.Object

	checked bool
	invalid error // what makes the schemas unusable
}

// checkSchemas returns what the API server refuses of the schemas. What it refuses of the rest does not change how
// objects are checked.
func (d *definition) checkSchemas(ctx context.Context) error {
	if d.checked || d.object.Place(nil) == nil { // those that are built in are valid
		return d.invalid
	}
	d.checked = true
	crd, err := decodeDefinition(d.object)
	if err != nil {
		return nil //nolint:nilerr // such an object is no definition
	}
	for _, err := range definitionvalidation.ValidateCustomResourceDefinition(ctx, crd) {
		path := definitionPath(err.Field, d.object.Value)
		if slices.Contains(path, any("openAPIV3Schema")) {
			d.invalid = fmt.Errorf("%s: %s", workload.FieldString(path), errorMessage(d.object, err))
			d.invalid = fmt.Errorf("%s: %w", d.object.Place(path), d.invalid)
			break
		}
	}
	return d.invalid
}

// definedVersion is one version of a custom resource. What is costly is made when the first object of the version is checked.
type definedVersion struct {
	served     bool
	status     bool // a part of the object with a door of its own
	validation *apiextensions.CustomResourceValidation

	prepared   bool
	err        error
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// decodeDefinition reads a CustomResourceDefinition as the API server does, with its defaults.
func decodeDefinition(o gate.Object) (*apiextensions.CustomResourceDefinition, error) {
	text, err := json.Marshal(o.Value)
	if err != nil {
		return nil, err
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &v1); err != nil {
		return nil, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&v1)
	var out apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &out, nil); err != nil {
		return nil, err
	}
	return &out, nil
}

// newDefinition reads a CustomResourceDefinition.
func newDefinition(o gate.Object) (groupKind, *definition, error) {
	crd, err := decodeDefinition(o)
	if err != nil {
		return groupKind{}, nil, err
	}
	d := &definition{
		name: crd.Name, namespaced: crd.Spec.Scope == apiextensions.NamespaceScoped, scopeless: crd.Spec.Scope == "", plural: crd.Spec.Names.Plural,
		preserve: crd.Spec.PreserveUnknownFields != nil && *crd.Spec.PreserveUnknownFields, versions: map[string]*definedVersion{}, object: o,
		webhook: crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensions.WebhookConverter,
	}
	for _, v := range crd.Spec.Versions {
		dv := &definedVersion{served: v.Served, validation: v.Schema}
		if dv.validation == nil {
			dv.validation = crd.Spec.Validation // the conversion moved the validation that all versions share to this field
		}
		sub := v.Subresources
		if sub == nil {
			sub = crd.Spec.Subresources
		}
		dv.status = sub != nil && sub.Status != nil
		d.versions[v.Name] = dv
	}
	return groupKind{crd.Spec.Group, crd.Spec.Names.Kind}, d, nil
}

// definedKinds are definitions that differ, in the order of the objects.
type definedKinds map[groupKind][]*definition

// add notes the object if it is a CustomResourceDefinition. One that cannot be read is a finding where it is checked itself.
func (k definedKinds) add(o gate.Object) {
	for _, derived := range derivedDefinitions(o) {
		k.addDerived(gate.Object{Value: derived})
	}
	ref := o.Ref()
	if ref.Kind != "CustomResourceDefinition" || ref.APIVersion != "apiextensions.k8s.io/v1" {
		return
	}
	id, d, err := newDefinition(o)
	if err != nil {
		return
	}
	k.note(id, d)
}

// addDerived notes a definition that a controller makes, if its schemas can be used.
func (k definedKinds) addDerived(o gate.Object) {
	id, d, err := newDefinition(o)
	if err != nil {
		return
	}
	for _, version := range d.versions {
		if version.prepareValidators() != nil {
			return
		}
	}
	k.note(id, d)
}

func (k definedKinds) note(id groupKind, d *definition) {
	same := func(other *definition) bool {
		return reflect.DeepEqual(other.object.Value["spec"], d.object.Value["spec"])
	}
	if !slices.ContainsFunc(k[id], same) {
		k[id] = append(k[id], d)
	}
}

// addDefinitions notes the definitions among the objects, and those of the catalog for kinds that these do not define.
func (c *checker) addDefinitions(objects, catalog []gate.Object) {
	defined := definedKinds{}
	for _, object := range catalog {
		defined.add(object)
	}
	c.definitions = definedKinds{}
	for _, object := range objects {
		c.definitions.add(object)
	}
	for id, all := range defined {
		if c.definitions[id] == nil {
			c.definitions[id] = all
		}
	}
}

// servedVersion returns what serves a version of a kind: of several definitions that do, the last, or else the newest that is built
// in. Both are nil where none does.
func (c *checker) servedVersion(id groupKind, version string) (*definition, *definedVersion) {
	for _, d := range slices.Backward(c.definitions[id]) {
		if v := d.versions[version]; v != nil && v.served {
			return d, v
		}
	}
	if len(c.definitions[id]) == 0 {
		if k := c.builtIn.serving(id, version); k != nil {
			return k.serves(version)
		}
	}
	return nil, nil
}

// checkByDefinitions checks a custom resource. Files may contain several definitions of one kind, such as those of
// a chart's versions or of clusters. Which of them will meet the object is unknown, so the object passes if one
// definition reports no finding; otherwise the definition with the fewest findings counts, and the last one of
// these on a tie. Definitions that do not serve the object's version are skipped if another one does.
func (c *checker) checkByDefinitions(ctx context.Context, o gate.Object, definitions []*definition) {
	_, name, _ := strings.Cut(o.Ref().APIVersion, "/")
	var serving []*definition
	for _, d := range definitions {
		if v := d.versions[name]; v != nil && v.served {
			serving = append(serving, d)
		}
	}
	if len(serving) > 0 {
		definitions = serving
	}
	usable := slices.DeleteFunc(slices.Clone(serving), func(d *definition) bool { return d.versions[name].prepareValidators() != nil })
	if len(usable) > 0 { // a definition with an unusable schema cannot judge an object
		definitions = usable
	}
	if len(definitions) == 1 {
		c.checkCustom(ctx, o, definitions[0])
		return
	}
	before := c.results
	var least result.Results
	for i, d := range slices.Backward(definitions) {
		c.results = nil
		c.checkCustom(ctx, o, d)
		if found := c.results; i == len(definitions)-1 || len(found) < len(least) {
			least = found
		}
		if len(least) == 0 {
			break
		}
	}
	c.results = append(before, least...)
}

// prepareValidators makes what objects of the version are checked by.
func (v *definedVersion) prepareValidators() error {
	if v.prepared {
		return v.err
	}
	v.prepared = true
	v.err = v.compileServingInfo()
	return v.err
}

// compileServingInfo does what the API server does before it serves a version (source: getOrCreateServingInfoFor in
// pkg/apiserver of k8s.io/apiextensions-apiserver).
func (v *definedVersion) compileServingInfo() error {
	if v.validation == nil || v.validation.OpenAPIV3Schema == nil {
		return fmt.Errorf("the version has no schema")
	}
	s, err := schema.NewStructural(v.validation.OpenAPIV3Schema)
	if err != nil {
		return err
	}
	v.structural = s.DeepCopy()
	if err := defaulting.PruneDefaults(v.structural); err != nil {
		return err
	}
	if v.validator, _, err = validation.NewSchemaValidator(v.validation.OpenAPIV3Schema); err != nil {
		return err
	}
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return nil
}

// checkDefinition holds a CustomResourceDefinition against the API server's own rules for them.
func (c *checker) checkDefinition(ctx context.Context, o gate.Object) {
	crd, err := decodeDefinition(o)
	if err != nil {
		c.addFieldFinding(o, gate.CodeInvalidDefinition, nil, err.Error())
		return
	}
	crd.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}
	for _, err := range definitionvalidation.ValidateCustomResourceDefinition(ctx, crd) {
		path := definitionPath(err.Field, o.Value)
		if len(path) > 0 && path[0] == "status" || err.Type == field.ErrorTypeRequired && c.isReported(o, path) {
			continue // it follows from a finding about the versions
		}
		c.addFieldFinding(o, gate.CodeInvalidDefinition, path, errorMessage(o, err))
	}
}

// definitionPath is where an error about a definition belongs: the API server has moved what all versions have in common out of them.
func definitionPath(text string, object map[string]any) []any {
	for _, moved := range []struct{ from, to string }{
		{"spec.validation.", "spec.versions[0].schema."},
		{"spec.subresources.", "spec.versions[0].subresources."},
		{"spec.additionalPrinterColumns[", "spec.versions[0].additionalPrinterColumns["},
	} {
		if rest, ok := strings.CutPrefix(text, moved.from); ok {
			text = moved.to + rest
		}
	}
	return fieldPath(text, object)
}
