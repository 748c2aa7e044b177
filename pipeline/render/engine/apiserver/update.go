// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	customvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// checkUpdate reports what the API server rejects, or silently drops, of the change of an object. first is the index of the earliest
// finding about the object.
func (c *checker) checkUpdate(ctx context.Context, o gate.Object, v gate.Validated, first int) {
	if isForOtherTool(o) || isEncrypted(o.Value) {
		return
	}
	if why := gate.NotApplied(o.Value); why != "" {
		c.addFieldFinding(o, gate.CodeUpdateIgnored, nil, "the change is not applied: "+why)
		return
	}
	if c.isValidated(o) {
		c.addValidatedUpdate(o, v)
		return
	}
	for _, err := range c.customUpdateErrors(ctx, o) {
		path, message := fieldPath(err.Field, o.Value), errorMessage(o, err)
		name := workload.FieldString(path)
		reported := slices.ContainsFunc(c.results[first:], func(r result.Result) bool {
			return r.Message == message && (r.Field == nil && name == "" || r.Field != nil && r.Field.Path == name)
		})
		if !reported && !waitsForValues(o, path) {
			c.addRejectedUpdate(o, path, message)
		}
	}
}

// addValidatedUpdate reports the answer of Kubernetes' own validation.
func (c *checker) addValidatedUpdate(o gate.Object, v gate.Validated) {
	for _, p := range v.Update {
		path := updatePath(o, p)
		if !waitsForValues(o, path) {
			c.addRejectedUpdate(o, path, updateMessage(o, p, path))
		}
	}
	for _, text := range v.Ignored {
		path := fieldPath(text, o.Value)
		if !waitsForValues(o, path) {
			c.addFieldFinding(o, gate.CodeUpdateIgnored, path, "the API server keeps the value that the object has, and ignores the change without an error")
		}
	}
}

// addRejectedUpdate reports a change that the API server rejects, or that the object is replaced because of it.
func (c *checker) addRejectedUpdate(o gate.Object, path []any, message string) {
	if fn.MayBeReplaced(o.Value) {
		c.addFieldFinding(o, gate.CodeUpdateReplaced, path, "the object is deleted and created again, as the API server rejects the change: "+message)
		return
	}
	text := "the API server rejects the change: " + message + "; " + howToChange(o)
	if spec, _ := o.Old["spec"].(map[string]any); o.Ref().Kind == "Job" && spec["ttlSecondsAfterFinished"] != nil {
		// The Job may be deleted by then.
		c.addAtMost(o, gate.CodeUpdateRejected, result.Warning, path, text+"; once the old Job has been deleted by its ttlSecondsAfterFinished it is accepted")
		return
	}
	c.addFieldFinding(o, gate.CodeUpdateRejected, path, text)
}

// howToChange returns the way out for a kind.
func howToChange(o gate.Object) string {
	replace := "or annotate it with " + fn.HowToReplace
	switch o.Ref().Kind {
	case "ConfigMap", "Secret":
		return "give the changed object another name, delete the old one first, " + replace
	case "StatefulSet":
		return "take the change back, or delete the StatefulSet first with --cascade=orphan, which keeps its pods"
	case "PersistentVolumeClaim", "PersistentVolume":
		return "take the change back, or move the data to another one and delete this one"
	case "Namespace", "CustomResourceDefinition":
		return "take the change back, or use another name: deleting it deletes everything of it"
	}
	return "take the change back, delete the object first, " + replace
}

// mutable are the fields of a spec that may change in kinds for which the API server names the spec alone as immutable.
//
// Source: the validation of updates in pkg/apis/apps/validation and pkg/apis/core/validation, Kubernetes 1.36.
var mutable = map[string][]string{
	"StatefulSet": {
		"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
	},
	"PersistentVolumeClaim": {"resources", "volumeAttributesClassName"},
	"PersistentVolume": {
		"capacity", "accessModes", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions", "claimRef", "volumeAttributesClassName",
	},
	"Pod": {"activeDeadlineSeconds", "tolerations"},
}

// updatePath returns the field that cannot change. Where the API server names the spec as a whole, or a field by the name of a Go type,
// it is the one field of the spec that differs.
func updatePath(o gate.Object, p gate.ValidatedProblem) []any {
	path := fieldPath(p.Field, o.Value)
	spec, _ := o.Value["spec"].(map[string]any)
	old, _ := o.Old["spec"].(map[string]any)
	if len(path) == 1 && path[0] != "spec" && (spec[path[0].(string)] != nil || old[path[0].(string)] != nil) {
		return append([]any{"spec"}, path...) // the validation of volumes leaves the spec out
	}
	if len(path) > 1 && path[0] == "spec" && path[1] == "clusterIPs" && spec["clusterIPs"] == nil {
		return []any{"spec", "clusterIP"}
	}
	if len(path) == 0 || path[0] != "spec" || len(path) > 1 && path[1] != "persistentvolumesource" {
		return path
	}
	if changed := changedFields(o); len(changed) == 1 {
		return []any{"spec", changed[0]}
	}
	return path[:1]
}

// changedFields returns the fields of the spec that differ and cannot change, sorted.
func changedFields(o gate.Object) []string {
	spec, _ := o.Value["spec"].(map[string]any)
	old, _ := o.Old["spec"].(map[string]any)
	names := map[string]bool{}
	for _, fields := range []map[string]any{spec, old} {
		for name := range fields {
			if !slices.Contains(mutable[o.Ref().Kind], name) && !reflect.DeepEqual(spec[name], old[name]) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// immutableValue is the value in front of the API server's explanation.
var immutableValue = lazyregexp.New(`(?s)^Invalid value: .*: `)

// updateMessage returns the API server's message without the value, which is that of the file.
func updateMessage(o gate.Object, p gate.ValidatedProblem, path []any) string {
	message, _, _ := strings.Cut(p.Message, "\n") // what follows is a difference of Go values
	if p.Type == validation.TypeImmutable {
		message = immutableValue.ReplaceAllString(message, "")
	} else {
		message = problemMessage(o, p)
	}
	message = strings.TrimSpace(strings.TrimPrefix(message, "Forbidden: "))
	if changed := changedFields(o); len(path) == 1 && path[0] == "spec" && len(changed) > 0 {
		message += " (changed: " + strings.Join(changed, ", ") + ")"
	}
	return message
}

// customUpdateErrors returns what the API server rejects of the change of a custom resource, by the one definition that serves it.
func (c *checker) customUpdateErrors(ctx context.Context, o gate.Object) field.ErrorList {
	ref := o.Ref()
	_, name, _ := strings.Cut(ref.APIVersion, "/")
	d, version := c.servedVersion(groupKind{groupOf(ref.APIVersion), ref.Kind}, name)
	if d == nil || version.prepareValidators() != nil || d.webhook && o.Old["apiVersion"] != ref.APIVersion {
		return nil
	}
	object, old := storedCustom(o.Value, d, version), storedCustom(o.Old, d, version)
	if object == nil || old == nil {
		return nil
	}
	old["apiVersion"] = ref.APIVersion
	return validateCustomUpdate(ctx, minorNumber(c.server.Minor), object, old, version)
}

// storedCustom returns a custom resource as the API server stores it; nil if it cannot be read.
func storedCustom(value map[string]any, d *definition, v *definedVersion) map[string]any {
	object := storedCopy(value)
	if object == nil {
		return nil
	}
	if !d.preserve {
		pruning.Prune(object, v.structural, true)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
	if v.status {
		delete(object, "status")
	}
	return object
}

// firstRatcheting is the minor from which on the API server accepts values that do not change, valid or not.
const firstRatcheting = 30

// validateCustomUpdate validates a change as the API server does (source: ValidateUpdate in pkg/registry/customresource/strategy.go of
// k8s.io/apiextensions-apiserver).
func validateCustomUpdate(ctx context.Context, minor uint, object, old map[string]any, v *definedVersion) field.ErrorList {
	var options []customvalidation.ValidationOption
	var ratcheting []cel.Option
	if minor >= firstRatcheting {
		correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.structural})
		options, ratcheting = append(options, customvalidation.WithRatcheting(correlated)), append(ratcheting, cel.WithRatcheting(correlated))
	}
	errs := customvalidation.ValidateCustomResourceUpdate(nil, object, old, v.validator, options...)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, v.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	}
	if v.rules != nil && !slices.ContainsFunc(errs, blocksRules) {
		broken, _ := v.rules.Validate(ctx, nil, v.structural, object, old, celconfig.RuntimeCELCostBudget, ratcheting...)
		errs = append(errs, broken...)
	}
	return errs
}

// waitsForValues reports whether the change of a field is only in values that a later tool fills in, so that the change
// is unknown.
func waitsForValues(o gate.Object, path []any) bool {
	var value, old any = o.Value, o.Old
	for _, key := range path {
		value, old = gate.Child(value, key), gate.Child(old, key)
	}
	return !reflect.DeepEqual(value, old) && onlyPlaceholdersDiffer(value, old)
}

// onlyPlaceholdersDiffer reports whether every difference of two values is in a text with a placeholder.
func onlyPlaceholdersDiffer(value, old any) bool {
	fields, isMap := value.(map[string]any)
	oldFields, wasMap := old.(map[string]any)
	if isMap && wasMap {
		for key := range oldFields {
			if _, stays := fields[key]; !stays && !containsPlaceholder(oldFields[key]) {
				return false
			}
		}
		for key, item := range fields {
			if !onlyPlaceholdersDiffer(item, oldFields[key]) {
				return false
			}
		}
		return true
	}
	items, isList := value.([]any)
	oldItems, wasList := old.([]any)
	if isList && wasList && len(items) == len(oldItems) {
		for i := range items {
			if !onlyPlaceholdersDiffer(items[i], oldItems[i]) {
				return false
			}
		}
		return true
	}
	if reflect.DeepEqual(value, old) {
		return true
	}
	text, _ := value.(string)
	oldText, _ := old.(string)
	return podmap.HasPlaceholder(text) || podmap.HasPlaceholder(oldText)
}
