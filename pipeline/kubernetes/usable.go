// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"

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

// policyUnusableReason returns why a policy cannot be used, or "" if it can. The result is cached for the policy's
// text: reading the injector's configuration is slow, and policies are checked again and again.
func (r *Reporter) policyUnusableReason(ctx context.Context, key string, text []byte) (string, error) {
	digest := sha256.Sum256(text)
	r.mu.Lock()
	last, ok := r.judged[key]
	r.mu.Unlock()
	if ok && last.digest == digest {
		return last.wrong, nil
	}
	wrong, err := whatIsWrong(ctx, text)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.judged == nil {
		r.judged = map[string]judged{}
	}
	r.judged[key] = judged{digest, wrong}
	return wrong, nil
}

// forgetJudged releases the cached result of a deleted policy.
func (r *Reporter) forgetJudged(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.judged, key)
}

// whatIsWrong returns why a policy cannot be used: it is read as it is before an injection, with the injector's configuration, values,
// mesh config and templates. What comes from the cluster or the objects that are rendered is not known here, and is left out.
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
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{policy}, fn.WithWorkers(1))
	if err != nil {
		return nil, err
	}
	return injector.Run(ctx, nil)
}
