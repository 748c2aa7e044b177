// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/render"
)

// maxAdmissionRuns bounds how often files are injected until all answers are known. The first run asks about all pods; a further one
// asks about pods that are another one because of an answer.
const maxAdmissionRuns = 4

// admissionAnswers has a renderer evaluate MutatingAdmissionPolicies, because this program contains no code of the API server: it
// collects what the injection asks, and has the injection run again with the answers.
type admissionAnswers struct {
	mu    sync.Mutex
	known map[string]fn.AdmissionAnswer
	asked map[string]fn.AdmissionRequest
}

func newAdmissionAnswers() *admissionAnswers {
	return &admissionAnswers{known: map[string]fn.AdmissionAnswer{}, asked: map[string]fn.AdmissionRequest{}}
}

// evaluate returns the answer to a request if it is known, and otherwise that nothing changes.
func (a *admissionAnswers) evaluate(request fn.AdmissionRequest) fn.AdmissionAnswer {
	key, err := json.Marshal(request)
	if err != nil {
		return fn.AdmissionAnswer{Failed: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.known[string(key)]
	if !ok {
		a.asked[string(key)] = request
	}
	return answer
}

// ask asks what was not known. It reports whether there was anything.
func (a *admissionAnswers) ask(ctx context.Context) (bool, error) {
	if len(a.asked) == 0 {
		return false, nil
	}
	keys := slices.Sorted(maps.Keys(a.asked))
	var requests []fn.AdmissionRequest
	for _, key := range keys {
		requests = append(requests, a.asked[key])
	}
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		return false, err
	}
	defer pool.Close()
	answers, err := pool.Mutate(ctx, requests)
	if err != nil {
		return false, err
	}
	for i, key := range keys {
		a.known[key] = answers[i]
	}
	clear(a.asked)
	return true, nil
}

// runGroup runs the policies of a group over its files, again until all changes of MutatingAdmissionPolicies are known.
func runGroup(ctx context.Context, g *policyGroup, in *fn.Injector, answers *admissionAnswers) (err error) {
	for range maxAdmissionRuns {
		if g.report, err = g.batch.Run(ctx, in); err != nil {
			return err
		}
		again, err := answers.ask(ctx)
		if err != nil || !again {
			return err
		}
	}
	return errors.New("writing MutatingAdmissionPolicies: their changes depend on each other without an end")
}
