// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
)

// look is one look at a daemon's set-up.
type look struct {
	*report
	config *config.Config
	o      Options
	in     *daemon.Inspection
	ask    questions
	asked  map[string]int // the index of a question among targets and sources, by what is asked
	found  []*answer
	owner  string // the daemon's user, where this is another one and the state directory is hidden from it
}

// answer is what came of one question, for all pipelines that it was asked for.
type answer struct {
	area      Area
	where     string
	message   string
	err       error
	advice    string
	pipelines []string
}

// CheckDaemon looks at all that a daemon of the configuration would work with.
func CheckDaemon(ctx context.Context, c *config.Config, warnings []string, o Options) []Finding {
	l := &look{report: &report{}, config: c, o: o, asked: map[string]int{}}
	l.reportSupportedVersions(o)
	for _, text := range warnings {
		l.addWarning(Configuration, "", text, "")
	}
	dir, err := os.MkdirTemp("", "prerig-doctor-")
	if err != nil {
		l.addFailureUnlessHidden(State, os.TempDir(), err, "the doctor itself needs a directory for temporary files")
		return l.sortedRedactedFindings()
	}
	defer os.RemoveAll(dir)
	following, stop := context.WithCancel(ctx)
	defer stop()
	running := l.checkState(ctx)
	l.checkAddresses(running)
	l.checkWebhooks()
	l.checkIsolation(ctx)
	l.checkQueue(ctx)
	l.in, err = daemon.Inspect(following, c, daemon.Options{Version: o.Version}, daemon.Look{Offline: o.Offline, Timeout: o.Timeout}, dir, func(from secret.Reader) secret.Reader {
		l.secrets.from = from
		return &l.secrets
	})
	if err != nil {
		l.addFailureUnlessHidden(Pipelines, pipelinesPlace(c), err, "")
	}
	if l.in != nil {
		for _, origin := range l.in.Skipped {
			l.addWarning(Pipelines, origin, "not checked (--offline): its pipelines are not read",
				"prerig doctor without --offline checks them")
		}
	}
	if l.in != nil && l.in.Catalog != nil {
		l.checkSecretFiles()
		for _, e := range l.in.Catalog.All() {
			l.checkEntry(ctx, e)
		}
		if len(l.in.Catalog.All()) == 0 && len(l.in.Skipped) == 0 {
			l.addWarning(Pipelines, pipelinesPlace(c), "no pipelines found", "prerig init --source . writes them")
		}
	}
	l.ask.runAllChecks(ctx, o)
	for _, a := range l.found {
		f := Finding{Area: a.area, Severity: result.Info, Where: a.where, Message: a.message, Advice: a.advice,
			Pipelines: a.pipelines}
		if a.err != nil {
			severity, advice := l.severityForOtherUser(a.err)
			f.Severity, f.Message, f.Advice = severity, a.err.Error(), cmp.Or(advice, a.advice)
			if errors.Is(a.err, context.DeadlineExceeded) {
				f.Message = fmt.Sprintf("no response within %s: %s", o.Timeout, f.Message)
			}
		}
		l.add(f)
	}
	if l.in != nil && l.in.Catalog != nil {
		checkRenders(ctx, l, l.in)
	}
	return l.sortedRedactedFindings()
}

// pipelinesPlace describes the origins of pipelines.
func pipelinesPlace(c *config.Config) string {
	repositories := c.Repositories()
	switch {
	case c.Pipelines != "":
		return c.Pipelines
	case len(repositories) > 0:
		return "pipelines_git"
	}
	return "kubernetes"
}

// checkEntry looks at one pipeline.
func (l *look) checkEntry(ctx context.Context, e catalog.Entry) {
	if e.Err != nil {
		l.add(Finding{Area: Pipelines, Severity: result.Error, Where: e.File, Message: e.Err.Error(), Pipelines: []string{e.Key}})
		return
	}
	if e.Pipeline.Spec.Suspend {
		l.addPassedCheck(Pipelines, e.File, "%s is valid, and suspended by its file", e.Key)
	} else {
		l.addPassedCheck(Pipelines, e.File, "%s is valid", e.Key)
	}
	for i, ref := range e.Pipeline.Spec.Policies {
		l.checkPolicy(ctx, e, i, ref)
	}
	l.checkFurtherSecrets(ctx, e)
	for _, source := range e.Sources(l.config.Pipelines) {
		l.checkSource(e, source)
	}
	for i, to := range e.Pipeline.Spec.Publish {
		l.checkTarget(e, i, to)
	}
	if len(e.Pipeline.Spec.Publish) == 0 {
		l.addWarning(Targets, e.Key+" spec.publish", "the pipeline only renders, and has no publish target",
			"prerig init writes an example entry")
	}
}

// checkPolicy checks a policy that is not in the source: those in the source are for prerig render to read.
func (l *look) checkPolicy(ctx context.Context, e catalog.Entry, i int, ref v1alpha1.PolicyRef) {
	if ref.Path != "" {
		return
	}
	where := fmt.Sprintf("%s spec.policies[%d]", e.Key, i)
	policies, err := l.in.Builder.ReadPolicies(e.Pipeline.Metadata.Namespace, ref)
	if err != nil {
		l.addFailureUnlessHidden(Policies, where, err, "")
		return
	}
	l.checkInjection(ctx, where, policies)
}

// askServerOnce has something asked of a server once, for all pipelines that need it.
func (l *look) askServerOnce(key string, a answer, pipeline string, ask func(ctx context.Context, a *answer)) {
	if at, ok := l.asked[key]; ok {
		if last := l.found[at].pipelines; last[len(last)-1] != pipeline {
			l.found[at].pipelines = append(last, pipeline)
		}
		return
	}
	a.pipelines = []string{pipeline}
	l.asked[key] = len(l.found)
	l.found = append(l.found, &a)
	if l.o.Offline {
		a.message = "not checked (--offline)"
		l.found[len(l.found)-1] = &a
		return
	}
	l.ask.add(a.where, func(ctx context.Context) { ask(ctx, &a) })
}

func (l *look) checkIsolation(ctx context.Context) {
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		l.addFailureUnlessHidden(Isolation, "", err, "")
		return
	}
	defer pool.Close()
	found, err := pool.Isolation(ctx)
	switch {
	case err != nil:
		l.addFailureUnlessHidden(Isolation, "", fmt.Errorf("no renderer could be started: %w", err), "")
	case found.Problem() != "":
		l.addWarning(Isolation, "", found.Problem(), "currently: "+found.String())
	default:
		l.addPassedCheck(Isolation, "", "renderers are isolated by: %s", found)
	}
}

func (l *look) checkQueue(ctx context.Context) {
	if l.config.NATS.URL == "" {
		return
	}
	if l.o.Offline {
		l.addPassedCheck(State, "nats.url", "not checked (--offline)")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	if err := daemon.CheckQueue(ctx, l.config); err != nil {
		l.addFailureUnlessHidden(State, "nats.url", err,
			"the servers must run with JetStream, and be reached with nats.credentials and nats.ca")
		return
	}
	l.addPassedCheck(State, "nats.url", "NATS responds, and has JetStream")
}
