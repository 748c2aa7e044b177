// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Request is a pod that is being created.
type Request struct {
	Namespace string          `json:"namespace"`
	Pod       json.RawMessage `json:"pod"`
}

// Answer is what the webhook makes of a pod.
type Answer struct {
	// Pod is the pod with the webhook's patch, omitted if no patch exists or the pod is rejected.
	Pod json.RawMessage `json:"pod,omitempty"`
	// Refused is why the pod is refused: the webhook's message, or what it panicked with, which its caller sees as a broken
	// connection.
	Refused string `json:"refused,omitempty"`
	// Panicked reports whether the webhook panicked.
	Panicked bool `json:"panicked,omitempty"`
	// Unknown are the pod's fields that the Kubernetes types which Istio is built with do not have.
	Unknown []string `json:"unknown,omitempty"`
}

// answer sends the pod through the webhook's handler and applies the patch as the API server does.
func (w *webhook) answer(r Request) (Answer, error) {
	if unknown := unknownFields(r.Pod); len(unknown) > 0 {
		return Answer{Unknown: unknown}, nil
	}
	body, err := json.Marshal(reviewOf(r))
	if err != nil {
		return Answer{}, fmt.Errorf("writing an AdmissionReview: %w", err)
	}
	recorder, cause := w.serve(body)
	if cause != nil {
		return Answer{Refused: fmt.Sprint("panic: ", cause), Panicked: true}, nil
	}
	if recorder.Code != http.StatusOK {
		return Answer{Refused: fmt.Sprintf("%d %s", recorder.Code, recorder.Body)}, nil
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		return Answer{}, fmt.Errorf("reading the webhook's answer: %w", err)
	}
	if !review.Response.Allowed {
		return Answer{Refused: review.Response.Result.Message}, nil
	}
	if len(review.Response.Patch) == 0 {
		return Answer{}, nil
	}
	patch, err := jsonpatch.DecodePatch(review.Response.Patch)
	if err != nil {
		return Answer{}, fmt.Errorf("reading the webhook's patch: %w", err)
	}
	pod, err := patch.Apply(r.Pod)
	if err != nil {
		return Answer{}, fmt.Errorf("applying the webhook's patch: %w", err)
	}
	return Answer{Pod: pod}, nil
}

// unknownFields returns the fields of a pod that the Kubernetes types do not have. Istiod does not see them, and
// its patch, which addresses list elements by index, leaves them in place, perhaps with another container.
func unknownFields(pod json.RawMessage) []string {
	problems, err := kjson.UnmarshalStrict(pod, &corev1.Pod{}, kjson.DisallowUnknownFields)
	if err != nil {
		return nil // the webhook will report it
	}
	var out []string
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out
}

// serve returns the handler's answer, or the value that it panicked with.
func (w *webhook) serve(body []byte) (recorder *httptest.ResponseRecorder, cause any) {
	defer func() { cause = recover() }()
	req := httptest.NewRequest(http.MethodPost, w.path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	recorder = httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, req)
	return recorder, nil
}

func reviewOf(r Request) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "1",
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: r.Namespace,
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: r.Pod},
		},
	}
}
