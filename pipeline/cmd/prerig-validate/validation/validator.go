// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	_ "time/tzdata" // of CronJobs, as in cmd/kube-apiserver: a confined program reads no files of the machine

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
)

// Validator answers requests, one at a time. The zero value is ready.
type Validator struct {
	strategies map[schema.GroupKind]strategy
	types      typeChecker
}

// stored is an object of the internal type, and how the API server has it.
type stored struct {
	kind     schema.GroupVersionKind // as it was written
	object   runtime.Object
	strategy strategy
	ctx      context.Context
}

// errUnknownKind is returned for a kind that is not known.
var errUnknownKind = errors.New("the release does not store the kind")

// undecodableError is that an object cannot be read into the type of its kind.
type undecodableError struct{ cause error }

// Error describes the error.
func (e *undecodableError) Error() string { return "decoding the object: " + e.cause.Error() }

// Answer answers a request.
func (v *Validator) Answer(r Request) (answer Answer) {
	answer.ID = r.ID
	defer func() {
		if p := recover(); p != nil {
			answer = Answer{ID: r.ID, Error: fmt.Sprintf("validating: Kubernetes' code panicked: %v", p)}
		}
	}()
	var err error
	switch r.Operation {
	case Create:
		answer.Problems, err = v.create(r)
	case Update:
		answer.Problems, answer.Ignored, err = v.update(r)
	case Apply:
		answer.Problems, err = v.types.check(r.Object)
	default:
		err = fmt.Errorf("reading the request: there is no operation %q", r.Operation)
	}
	if errors.Is(err, errUnknownKind) {
		return Answer{ID: r.ID}
	}
	answer.Known = true
	var undecodable *undecodableError
	if errors.As(err, &undecodable) {
		answer.Problems, err = []Problem{{Type: TypeUndecodable, Message: undecodable.cause.Error()}}, nil
	}
	if err != nil {
		return Answer{ID: r.ID, Known: true, Error: err.Error()}
	}
	answer.Problems = sortProblems(answer.Problems)
	if n := len(answer.Problems); n > MaxProblems {
		answer.Problems, answer.Omitted = answer.Problems[:MaxProblems], n-MaxProblems
	}
	return answer
}

// create validates an object as a new one.
func (v *Validator) create(r Request) ([]Problem, error) {
	s, err := v.decode(r.Object, r.Namespace, "create")
	if err != nil {
		return nil, err
	}
	var out []Problem
	accessor, err := meta.Accessor(s.object)
	if err != nil {
		return nil, err
	}
	if accessor.GetResourceVersion() != "" {
		// Source: Create in pkg/storage/etcd3 of k8s.io/apiserver.
		out = append(out, Problem{
			Field: "metadata.resourceVersion", Type: string(metav1.CauseTypeForbidden),
			Message: "Forbidden: resourceVersion should not be set on objects to be created",
		})
	}
	out = append(out, s.prepareCreate()...)
	found, err := problemsOf(rest.BeforeCreate(s.strategy, s.ctx, s.object))
	return append(out, found...), err
}

// decode reads an object into the internal type, with the defaults of its version.
func (v *Validator) decode(text json.RawMessage, namespace, verb string) (*stored, error) {
	var written metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, &undecodableError{err}
	}
	kind := written.GroupVersionKind()
	if !legacyscheme.Scheme.Recognizes(kind) {
		return nil, errUnknownKind
	}
	strategy := v.strategy(kind.GroupKind())
	if strategy == nil {
		return nil, errUnknownKind
	}
	object, _, err := legacyscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, &undecodableError{err}
	}
	s := &stored{kind: kind, object: object, strategy: strategy}
	s.ctx = newContext(kind, cmp.Or(written.Namespace, namespace, metav1.NamespaceDefault), written.Name, verb,
		strategy.NamespaceScoped())
	return s, nil
}

// strategy returns the strategy of a kind, nil if the kind has none.
func (v *Validator) strategy(kind schema.GroupKind) strategy {
	if v.strategies == nil {
		v.strategies = map[schema.GroupKind]strategy{}
		for _, row := range rows() {
			kinds, _, err := legacyscheme.Scheme.ObjectKinds(row.internal)
			if err != nil {
				panic(err) // the row is wrong, which a test would have found
			}
			for _, k := range kinds {
				v.strategies[k.GroupKind()] = row.strategy
			}
		}
	}
	return v.strategies[kind]
}

// newContext makes the context of a request: strategies read the version and the user.
func newContext(kind schema.GroupVersionKind, namespace, name, verb string, namespaced bool) context.Context {
	if !namespaced {
		namespace = metav1.NamespaceNone
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	ctx := request.WithNamespace(context.Background(), namespace)
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIPrefix: "apis", APIGroup: kind.Group, APIVersion: kind.Version,
		Namespace: namespace, Resource: resource.Resource, Name: name,
	})
}

// objectUID is the UID of every object, so that what is derived from it is the same each time.
const objectUID = types.UID("00000000-0000-4000-8000-000000000000")

// generatedSuffix completes generateName. The API server uses random characters.
const generatedSuffix = "x2n4b"

// maxGeneratedBase is how much of generateName is used (source: pkg/storage/names of k8s.io/apiserver).
const maxGeneratedBase = 58

// prepareCreate does what the store of a kind does before the strategy sees a new object (source: Create in
// pkg/registry/generic/registry of k8s.io/apiserver, and the stores in pkg/registry of Kubernetes), and returns what
// that rejects.
func (s *stored) prepareCreate() []Problem {
	accessor, err := meta.Accessor(s.object)
	if err != nil {
		return nil
	}
	rest.FillObjectMetaSystemFields(accessor)
	accessor.SetUID(objectUID)
	accessor.SetCreationTimestamp(metav1.Unix(0, 0))
	if base := accessor.GetGenerateName(); base != "" && accessor.GetName() == "" {
		accessor.SetName(base[:min(len(base), maxGeneratedBase)] + generatedSuffix)
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(rest.ExpectedNamespaceForScope(request.NamespaceValue(s.ctx), s.strategy.NamespaceScoped()))
	}
	switch object := s.object.(type) {
	case *core.Service:
		return prepareServiceCreate(object)
	case *core.Pod:
		// Source: the admission plugin ServiceAccount, which every cluster runs.
		object.Spec.ServiceAccountName = cmp.Or(object.Spec.ServiceAccountName, "default")
	}
	return nil
}
