// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command defaulter returns manifests as Kubernetes' own API server has them before it admits them: it reads JSON
// objects from standard input, one after the other, and writes each on a line of its own to standard output, with
// the defaults of the Kubernetes version that it was built from, and in the form in which the API server would send
// it to a webhook. An object that the API server cannot read is replaced by a Status with the reason.
//
// It knows Pods and all kinds that create them: PodTemplates, ReplicationControllers and the kinds of apps and
// batch. With -pods it instead writes the Pod that a controller would create from the object's template, defaulted
// as a Pod; for a Pod it writes that Pod. With -validate it writes a Status for each Pod: whether the API server
// accepts it, and why not. With -quotas it writes one for each list of LimitRanges, ResourceQuotas and a Pod: whether
// the quotas let the Pod in. With -version it writes the version of Kubernetes and exits.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
)

func main() {
	pods := flag.Bool("pods", false, "write the Pod that a controller would make of each object's template")
	validate := flag.Bool("validate", false, "write a Status for each Pod: whether the API server accepts it")
	quotas := flag.Bool("quotas", false, "write a Status for each list: whether its ResourceQuotas admit its Pod")
	version := flag.Bool("version", false, "write the version of Kubernetes")
	flag.Parse()
	if *version {
		fmt.Println(kubernetesVersion())
		return
	}
	answer := defaulted
	switch {
	case *validate:
		answer = validated
	case *quotas:
		answer = constrained
	case *pods:
		answer = defaultedPod
	}
	out := bufio.NewWriter(os.Stdout)
	err := answerAll(os.Stdin, out, answer)
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "defaulter:", err)
		os.Exit(1)
	}
}

// kubernetesVersion is the version of the module that the defaults are from, such as v1.36.3.
func kubernetesVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/kubernetes" {
				return m.Version
			}
		}
	}
	return "unknown"
}

// answerAll reads objects until the end and writes the answer to each. The error is about the streams only.
func answerAll(in io.Reader, out *bufio.Writer, answerOne func([]byte) ([]byte, error)) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	for {
		var text json.RawMessage
		err := decoder.Decode(&text)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading standard input: %w", err)
		}
		answer, err := answerOne(text)
		if err != nil {
			answer, err = json.Marshal(refusal(err))
		}
		if err != nil {
			return fmt.Errorf("writing a Status: %w", err)
		}
		if _, err := fmt.Fprintf(out, "%s\n", answer); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
		// A client that sends one object at a time waits for the answer.
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
	}
}

// refusal is the answer for an object that cannot be read.
func refusal(err error) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Reason:   metav1.StatusReasonBadRequest,
		Message:  err.Error(),
	}
}

// defaultedPod defaults the Pod that is made of an object.
func defaultedPod(text []byte) ([]byte, error) {
	answer, err := defaulted(text)
	if err != nil {
		return nil, err
	}
	pod, err := podOf(answer)
	if err != nil {
		return nil, err
	}
	return defaulted(pod)
}

// defaulted does what the API server does to the body of a request: it reads it into the type of its version, which sets
// the defaults, and has it in its internal type from then on. What a webhook gets is made from that again.
func defaulted(text []byte) ([]byte, error) {
	internal, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	sent, err := legacyscheme.Scheme.ConvertToVersion(internal, kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting %s: %w", kind, err)
	}
	sent.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(sent)
}
