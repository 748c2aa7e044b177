// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	customvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// checkCustom does with a custom resource what the API server does when one is created, in the same order (source:
// unstructuredSchemaCoercer in pkg/apiserver and customResourceStrategy in pkg/registry/customresource of
// k8s.io/apiextensions-apiserver).
func (c *checker) checkCustom(ctx context.Context, o gate.Object, d *definition) {
	apiVersion := o.Ref().APIVersion
	_, name, _ := strings.Cut(apiVersion, "/")
	version := d.versions[name]
	if version == nil || !version.served {
		c.addFieldFinding(o, gate.CodeUnservedKind, []any{"apiVersion"}, fmt.Sprintf("CustomResourceDefinition %s does not serve the version %s", d.name, name))
		return
	}
	if err := d.checkSchemas(ctx); err != nil {
		c.addFieldFinding(o, gate.CodeInvalidDefinition, nil, fmt.Sprintf("nothing was checked, as CustomResourceDefinition %s is not valid: %v", d.name, err))
		return
	}
	if err := version.prepareValidators(); err != nil {
		c.addFieldFinding(o, gate.CodeInvalidDefinition, nil, fmt.Sprintf("nothing was checked, as the schema of CustomResourceDefinition %s cannot be used: %v", d.name, err))
		return
	}
	if !c.checkMetadataTypes(o) {
		return
	}
	c.checkMetadata(o, d.namespaced || d.scopeless && o.Ref().Namespace != "", validation.NameIsDNSSubdomain)
	object := storedCopy(o.Value)
	if object == nil {
		c.addFieldFinding(o, gate.CodeWrongType, nil, "the object cannot be written as JSON")
		return
	}
	if !d.preserve {
		c.checkUnknownFields(o, object, version.structural)
	}
	defaulting.Default(object, version.structural)
	if version.status {
		delete(object, "status")
	}
	c.checkValues(ctx, o, object, version)
}

// storedCopy returns a copy with the number types that the API server's own code expects, or nil if none exists.
func storedCopy(object map[string]any) map[string]any {
	text, err := utiljson.Marshal(object)
	if err != nil {
		return nil
	}
	var out map[string]any
	if err := utiljson.Unmarshal(text, &out); err != nil {
		return nil
	}
	return runtime.DeepCopyJSON(out)
}

// checkUnknownFields reports the fields that are dropped, and drops them.
func (c *checker) checkUnknownFields(o gate.Object, object map[string]any, s *schema.Structural) {
	unknown := pruning.PruneWithOptions(object, s, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	err, more := objectmeta.CoerceWithOptions(nil, object, s, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		c.addErrors(o, gate.CodeWrongType, field.ErrorList{err})
	}
	for _, text := range append(unknown, more...) {
		c.addFieldFinding(o, gate.CodeUnknownField, fieldPath(text, o.Value), "the CustomResourceDefinition does not have the field")
	}
}

// checkValues holds the object against the schema, and then against its rules.
func (c *checker) checkValues(ctx context.Context, o gate.Object, object map[string]any, v *definedVersion) {
	errs := customvalidation.ValidateCustomResource(nil, object, v.validator)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	for _, err := range errs {
		c.addFieldFinding(o, codeOfError(err), fieldPath(err.Field, o.Value), errorMessage(o, err))
	}
	if v.rules == nil || slices.ContainsFunc(errs, blocksRules) {
		return
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range broken {
		c.addFieldFinding(o, gate.CodeCustomRule, fieldPath(err.Field, o.Value), errorMessage(o, err))
	}
}

// blocksRules reports whether rules are not evaluated because of the error, which they could not cope with (source: hasBlockingErr in
// pkg/registry/customresource).
func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

func codeOfError(err *field.Error) string {
	switch err.Type {
	case field.ErrorTypeRequired:
		return gate.CodeRequired
	case field.ErrorTypeTypeInvalid:
		return gate.CodeWrongType
	}
	return gate.CodeWrongValue
}
