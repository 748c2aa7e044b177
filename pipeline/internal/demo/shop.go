// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// rendered is the branch that Prerig writes.
const rendered = "rendered"

func appName(i int) string {
	return []string{"basket", "checkout", "catalog", "search", "payment", "shipping", "stock", "invoice", "mail", "review"}[i%10] + appSuffix(i)
}

func appSuffix(i int) string {
	if i < 10 {
		return ""
	}
	return fmt.Sprintf("-%d", i/10+1)
}

// appFiles returns the files of one application at a version.
func appFiles(i int, version string) map[string]string {
	return map[string]string{"apps/" + appName(i) + "/app.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: shop
spec:
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      containers:
      - name: %[1]s
        image: registry.example.com/shop/%[1]s:%[2]s
        ports:
        - {name: http, containerPort: 8080}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: shop
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: http}
`, appName(i), version)}
}

// policyFiles returns the mesh's policy with Istio's version.
func policyFiles(version string) map[string]string {
	return map[string]string{"policy/mesh.yaml": `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
spec:
  istio:
    injector:
      builtIn: istio
      overrides:
        global:
          tag: ` + version + `
  namespaces:
  - name: shop
    labels: {istio-injection: enabled}
`}
}

// pipelineFiles returns a RenderPipeline for each application.
func pipelineFiles(n int, url string) map[string]string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s}
spec:
  source: {git: {url: %[2]s, ref: {branch: main}}}
  build: {path: apps/%[1]s}
  policies: [{path: policy/mesh.yaml}]
  publish: [{git: {branch: %[3]s}}]
`, appName(i), url, rendered)
	}
	return map[string]string{"shop.yaml": b.String()}
}

// commitAndPush commits, pushes and calls the webhook.
func (d *demoRun) commitAndPush(ctx context.Context, subject string, files map[string]string, want int) error {
	commit, err := d.repository.Commit(ctx, subject, files)
	if err != nil {
		return err
	}
	status, err := d.daemon.Push(ctx, d.repository.URL, commit)
	if err == nil && status != want {
		err = fmt.Errorf("calling the webhook: it was answered with %d", status)
	}
	return err
}

// waitForFiles waits until n files on the branch hold a text.
func (d *demoRun) waitForFiles(ctx context.Context, n int, text string) error {
	return d.waitUntil(ctx, fmt.Sprintf("%q in %d applications", text, n), func() bool {
		out, err := d.repository.Git(ctx, "grep", "-l", "-F", text, rendered)
		return err == nil && strings.Count(out+"\n", "\n") >= n
	})
}

// waitForCommit waits for a commit after one.
func (d *demoRun) waitForCommit(ctx context.Context, before string) error {
	return d.waitUntil(ctx, "a commit", func() bool { return d.repository.Head(rendered) != before })
}

func (d *demoRun) waitUntil(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w\n%s", what, ctx.Err(), d.daemon.Problems())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// waitForDebounce waits until the daemon may run the same pipeline again: it does not more than once in a second.
func (d *demoRun) waitForDebounce(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(1200 * time.Millisecond):
		return nil
	}
}

// printLog shows the commits on the branch since one, and how long they took.
func (d *demoRun) printLog(ctx context.Context, after string, begin time.Time) error {
	took := elapsedText(begin, time.Now())
	span := rendered
	if after != "" {
		span = after + ".." + rendered
	}
	out, err := d.repository.Git(ctx, "log", "--format=%h %s", span)
	if err != nil {
		return err
	}
	d.printLine("   after %s, on the branch %q:", took, rendered)
	d.printOutput(out)
	return nil
}

func elapsedText(begin, end time.Time) string { return end.Sub(begin).Round(time.Millisecond).String() }

// changedLines are the lines of a diff that a reader looks at.
func changedLines(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
			b.WriteString(line)
		}
	}
	return b.String()
}
