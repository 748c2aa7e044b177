// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// judged is what was found of a policy with a text.
type judged struct {
	digest [sha256.Size]byte
	wrong  string
}

// judgements caches why policies cannot be used, for the text of each: reading the injector's configuration is slow,
// and policies are checked again and again. The zero value is empty. It is safe for concurrent use.
type judgements struct {
	mu    sync.Mutex
	known map[string]judged // by the policies' keys
}

// reasonFor returns why a policy cannot be used, or "" if it can.
func (j *judgements) reasonFor(ctx context.Context, key string, text []byte) (string, error) {
	digest := sha256.Sum256(text)
	j.mu.Lock()
	last, ok := j.known[key]
	j.mu.Unlock()
	if ok && last.digest == digest {
		return last.wrong, nil
	}
	wrong, err := whatIsWrong(ctx, text)
	if err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known == nil {
		j.known = map[string]judged{}
	}
	j.known[key] = judged{digest, wrong}
	return wrong, nil
}

// forget releases the cached result of a deleted policy.
func (j *judgements) forget(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.known, key)
}

// whatIsWrong returns why a policy cannot be used: it is read as it is before an injection, with the injector's
// configuration, values, mesh config and templates. What comes from the cluster or the objects that are rendered is not
// known here, and is left out.
func whatIsWrong(ctx context.Context, text []byte) (string, error) {
	policy, err := policyv1alpha1.Parse(text)
	if err != nil {
		return catalog.WithoutLine(err), nil
	}
	spec := &policy.Spec
	if spec.Istio != nil && (spec.From != "" || spec.Istio.Injector.Config == "" && spec.Istio.Injector.BuiltIn == "") {
		spec.Istio = nil
	}
	spec.From = ""
	if spec.Images != nil && spec.Images.Lock != "" {
		spec.Images = nil
	}
	report, err := compileAndTestPolicy(ctx, policy)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return err.Error(), nil
	}
	for _, one := range report.Results {
		switch {
		case one.Severity != result.Error:
		case one.Field != nil:
			return one.Field.Path + ": " + one.Message, nil
		default:
			return one.Message, nil
		}
	}
	return "", nil
}

// compileAndTestPolicy prepares a policy, and runs it without input.
func compileAndTestPolicy(ctx context.Context, policy *policyv1alpha1.InjectionPolicy) (report *fn.Report, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fault.Recovered(cause)
		}
	}()
	unused := func(fn.AdmissionRequest) fn.AdmissionAnswer { return fn.AdmissionAnswer{} } // the renderer has its own
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{policy}, fn.WithWorkers(1), fn.WithAdmission(unused))
	if err != nil {
		return nil, err
	}
	return injector.Run(ctx, nil)
}
