// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// Identity names an object whatever the version of its kind.
type Identity struct{ Group, Kind, Namespace, Name string }

// Identity returns what an object and its earlier state have in common.
func (o Object) Identity() Identity {
	ref := o.Ref()
	group, _, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group = ""
	}
	return Identity{group, ref.Kind, ref.Namespace, ref.Name}
}

// PairOld sets Old of the objects that are among the old ones and differ from them, and returns the old objects that
// are missing now.
func PairOld(objects, old []Object) (gone []Object) {
	before := map[Identity]int{}
	for i, o := range old {
		if id := o.Identity(); id.Name != "" {
			before[id] = i
		}
	}
	stays := map[Identity]bool{}
	for i, o := range objects {
		id := o.Identity()
		stays[id] = true
		if n, ok := before[id]; ok {
			objects[i].Value, objects[i].Old = comparableStates(o.Value, old[n].Value)
		}
	}
	for i, o := range old {
		if id := o.Identity(); id.Name != "" && before[id] == i && !stays[id] {
			gone = append(gone, o)
		}
	}
	return gone
}

// comparableStates returns an object and its old state as they are compared. Of Secrets that SOPS has encrypted,
// digests replace the values: equal values are encrypted to equal text. The old state is nil if the states are equal,
// or the difference cannot be known.
func comparableStates(value, old map[string]any) (map[string]any, map[string]any) {
	if reflect.DeepEqual(value, old) {
		return value, nil
	}
	now, before := isEncrypted(value), isEncrypted(old)
	switch {
	case !now && !before:
		return value, old
	case value["kind"] != "Secret" || value["apiVersion"] != "v1":
		return value, nil
	}
	return withDigests(value, now == before), withDigests(old, now == before)
}

// isEncrypted reports whether SOPS has encrypted values of the object.
func isEncrypted(object map[string]any) bool {
	sops, _ := object["sops"].(map[string]any)
	return sops["mac"] != nil
}

// withDigests returns a Secret with digests of its values, or without values.
func withDigests(secret map[string]any, values bool) map[string]any {
	out := maps.Clone(secret)
	delete(out, "sops")
	for _, key := range []string{"data", "stringData"} {
		fields, _ := out[key].(map[string]any)
		delete(out, key)
		if !values || fields == nil {
			continue
		}
		digests := map[string]any{}
		for name, value := range fields {
			text, _ := value.(string)
			sum := sha256.Sum256([]byte(text))
			digests[name] = base64.StdEncoding.EncodeToString(sum[:])
		}
		out[key] = digests
	}
	return out
}

// ValidateUpdates returns a validator's answers about the objects that have an old state, in the order of all objects. Create has
// only what makes the update fail. Problems that the old state has as well are left out: its cluster has accepted it.
func ValidateUpdates(ctx context.Context, objects []Object, validator Validator) ([]Validated, error) {
	out := make([]Validated, len(objects))
	var indexes []int
	var requests []validation.Request
	for i, o := range objects {
		if o.Old != nil {
			indexes = append(indexes, i)
			requests = append(requests, validation.Request{Operation: validation.Update, Object: o.Value, Old: o.Old})
		}
	}
	answers, err := ask(ctx, requests, validator)
	if err != nil {
		return nil, err
	}
	var rejected []int
	var more []validation.Request
	for n, i := range indexes {
		out[i].Update, out[i].Ignored, out[i].Error = problemsOf(answers[n]), answers[n].Ignored, answers[n].Error
		if len(out[i].Update) > 0 {
			rejected, out[i].Ignored = append(rejected, i), nil
			more = append(more, validation.Request{Operation: validation.Create, Object: objects[i].Value},
				validation.Request{Operation: validation.Create, Object: objects[i].Old})
		}
	}
	if answers, err = ask(ctx, more, validator); err != nil {
		return nil, err
	}
	for n, i := range rejected {
		created, before := problemsOf(answers[2*n]), problemsOf(answers[2*n+1])
		v := &out[i]
		all := slices.DeleteFunc(v.Update, func(p ValidatedProblem) bool { return hasProblem(before, p, false) })
		v.Update = nil
		for _, p := range all {
			if hasProblem(created, p, true) {
				v.Create = append(v.Create, p)
			} else {
				v.Update = append(v.Update, p)
			}
		}
	}
	return out, nil
}

func ask(ctx context.Context, requests []validation.Request, validator Validator) ([]validation.Answer, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	return validator.Ask(ctx, requests)
}

// hasProblem reports whether a problem is among others: one about the same field, with the same message if that is asked for.
func hasProblem(problems []ValidatedProblem, p ValidatedProblem, message bool) bool {
	key := keyOf(p.Problem)
	return slices.ContainsFunc(problems, func(other ValidatedProblem) bool {
		found := keyOf(other.Problem)
		if !message {
			found.Message = key.Message
		}
		return found == key
	})
}

// Destroys returns what the deletion of an object also destroys, in words, or "" for kinds that are alone.
func (i Identity) Destroys() string { return destroyed[i.Group+"/"+i.Kind] }

var destroyed = map[string]string{
	"/Namespace":             "with everything that is in it",
	"/PersistentVolumeClaim": "maybe with the data of the volume",
	"/PersistentVolume":      "maybe with its data",
	"apiextensions.k8s.io/CustomResourceDefinition": "with every object of the kind, in all namespaces",
}

// NotApplied returns why Flux leaves an object that exists as it is, or "" if it does not.
//
// Source: kustomize-controller 1.9, docs/spec/v1/kustomizations.md.
func NotApplied(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	ssa, _ := annotations["kustomize.toolkit.fluxcd.io/ssa"].(string)
	reconcile, _ := annotations["kustomize.toolkit.fluxcd.io/reconcile"].(string)
	switch {
	case strings.EqualFold(ssa, "IfNotPresent") || strings.EqualFold(ssa, "Ignore"):
		return "the annotation kustomize.toolkit.fluxcd.io/ssa is " + ssa
	case strings.EqualFold(reconcile, "disabled"):
		return "the annotation kustomize.toolkit.fluxcd.io/reconcile is " + reconcile
	}
	return ""
}
