// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance compares what the engine makes of workloads with what Istio makes of them. A corpus is a directory
// per Istio version with cases.yaml, inputs, expected outputs and configurations. Two outputs are equal if they are the
// same Kubernetes objects after both have been decoded into the API's types; objects of kinds that are not in
// k8s.io/api are compared as maps.
//
// Up to Istio 1.7 the expected outputs were made by istioctl kube-inject, which was another code path than the webhook's.
// Where such an output differs only in fields that the webhook alone sets (see webhookOnly), the case counts as
// EqualButWebhookOnly and never as Equal.
package conformance
