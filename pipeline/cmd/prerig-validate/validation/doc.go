// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation answers what Kubernetes' API server would answer to an object of a built-in kind: by the code of the API server
// itself, of the version that the module requires, with the feature gates at the defaults of that release. It asks no cluster.
//
// # Protocol
//
// Standard input is a stream of requests and standard output one of answers, as JSON objects, one on each line. The first line of the
// output is the greeting:
//
//	{"protocol":1,"kubernetes":"v1.36.3"}
//
// Then each line of the input gets one line of the output, in the order of the input. Equal requests get equal answers. A request is a
// [Request], an answer an [Answer]:
//
//	{"id":1,"operation":"create","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[]}}}
//	{"id":1,"known":true,"problems":[{"field":"spec.containers","type":"FieldValueRequired","message":"Required value"}]}
//
// The operations:
//
//   - create: the object is decoded from its version, defaulted, converted and validated by the strategy of its kind, as the API server does
//     when one is created (rest.BeforeCreate in pkg/registry/rest of k8s.io/apiserver).
//   - update: "old" is what the cluster has of it now, as it was applied, and "object" is applied next (rest.BeforeUpdate). Fields that the
//     API server fills in by itself when an object is created, such as the selector of a Job, are kept, as kubectl apply and server-side
//     apply keep them. "ignored" lists the fields whose change the API server drops without an error.
//   - apply: the object is read as the type of server-side apply, which rejects lists with duplicate keys and fields of a wrong type
//     (ObjectToTyped of k8s.io/apimachinery/pkg/util/managedfields).
//
// "known" is false for kinds that the release does not have, or that are never stored: the object was not checked.
// "error" is set if the request is malformed or beyond a limit; the object was not checked then either. An object that
// the API server cannot read into the type of its kind has one problem, of [TypeUndecodable].
//
// A "type" is one of the API server's causes, such as FieldValueRequired, FieldValueInvalid, FieldValueDuplicate, FieldValueNotFound,
// FieldValueForbidden, FieldValueNotSupported, FieldValueTooLong, FieldValueTooMany and FieldValueTypeInvalid. A change of an immutable field
// is FieldValueInvalid or FieldValueForbidden in Kubernetes; its type here is [TypeImmutable]. A "message" holds values of the object, also those of Secrets.
//
// What is not checked is what depends on a cluster: other objects, quotas, ranges of addresses, admission, authorization.
//
// # Limits
//
// A line of the input is at most [MaxLine] bytes, an answer has at most [MaxProblems] problems, and a request may take
// [MaxTime]; if it needs longer, the program reports that and ends.
package validation
