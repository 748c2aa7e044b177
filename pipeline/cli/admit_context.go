// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/fields"
	"github.com/prerig/prerig/pipeline/verify/live"
)

// dryRunsAtOnce bounds the dry runs that a cluster answers at the same time.
const dryRunsAtOnce = 8

// asksCluster reports whether the pods are sent to a cluster.
func (a *admitRun) asksCluster() bool { return a.kubeContext != "" || a.kubeconfig != "" }

// liveConfig returns the connection to the cluster.
func (a *admitRun) liveConfig() (*rest.Config, error) {
	config, err := live.Config(a.kubeconfig, a.kubeContext)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "prerig-admit"
	return config, nil
}

// readLive reads the objects of the cluster, as prerig capture does.
func (a *admitRun) readLive(ctx context.Context, config *rest.Config) (gateInput, error) {
	c := captureRun{streams: a.streams}
	content, err := c.readCluster(ctx, config)
	if err != nil {
		return gateInput{}, err
	}
	return gateInputOf(content)
}

// gateInputOf returns the objects of files by their names.
func gateInputOf(content map[string][]byte) (input gateInput, err error) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		file, err := manifest.Parse(name, content[name])
		if err != nil {
			return input, fmt.Errorf("reading the cluster's %s: %w", name, err)
		}
		for _, document := range file.Docs {
			if err := input.addGateDocument(document, document, name); err != nil {
				return input, fmt.Errorf("reading the cluster's %s: %w", name, err)
			}
		}
	}
	return input, nil
}

// askCluster sends each pod to the cluster as a dry run, and compares the answers.
func (a *admitRun) askCluster(ctx context.Context, config *rest.Config, pods []render.AdmittedPod) error {
	dryRuns, err := live.NewDryRuns(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dryRunsAtOnce)
	for i := range pods {
		p := &pods[i]
		if p.Created == nil {
			continue
		}
		group.Go(func() error {
			answer, err := dryRuns.Create(ctx, sentPod(p.Created, p.Ref.Kind))
			if err != nil {
				return err
			}
			p.Live = &render.LivePod{Rejected: answer.Rejected, Unanswered: answer.Unanswered}
			if answer.Pod != nil {
				p.Live.Pod = comparablePod(answer.Pod)
				p.Live.Fields = liveFields(p)
			}
			p.Created = nil
			return nil
		})
	}
	return group.Wait()
}

// ownerID is the uid of owners in dry runs. The API server requires one.
const ownerID = "00000000-0000-0000-0000-000000000000"

// numberBetween is what the name of the object between a workload of a kind and its pods ends in. It is a made-up one.
var numberBetween = map[string]string{"Deployment": "-5d8f7c9b6d", "CronJob": "-29012345"}

// hashLabel has the number in the labels of a Deployment's pods. By it a mesh finds the Deployment.
const hashLabel = "pod-template-hash"

// sentPod returns a pod of a workload as the API server takes it.
func sentPod(created map[string]any, kind string) map[string]any {
	pod := maps.Clone(created)
	metadata, _ := pod["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	owners, _ := metadata["ownerReferences"].([]any)
	number := numberBetween[kind]
	var sent []any
	for _, o := range owners {
		owner, _ := o.(map[string]any)
		owner = maps.Clone(owner)
		owner["uid"] = ownerID
		owner["name"] = fmt.Sprint(owner["name"]) + number
		sent = append(sent, owner)
	}
	if len(sent) > 0 {
		metadata["ownerReferences"] = sent
	}
	if number != "" {
		metadata["generateName"] = strings.TrimSuffix(fmt.Sprint(metadata["generateName"]), "-") + number + "-"
	}
	if kind == "Deployment" {
		labels, _ := metadata["labels"].(map[string]any)
		labels = maps.Clone(labels)
		if labels == nil {
			labels = map[string]any{}
		}
		labels[hashLabel] = number[1:]
		metadata["labels"] = labels
	}
	pod["metadata"] = metadata
	return pod
}

// comparablePod returns labels, annotations and the spec of a pod, without the letters that an API server draws and the made-up numbers.
func comparablePod(pod map[string]any) map[string]any {
	metadata, _ := pod["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		if v, ok := metadata[key].(map[string]any); ok {
			v, _ = withoutDrawnNames(v).(map[string]any)
			kept[key] = v
			if key == "labels" && v[hashLabel] == numberBetween["Deployment"][1:] {
				delete(v, hashLabel)
			}
		}
	}
	spec, _ := withoutDrawnNames(pod["spec"]).(map[string]any)
	return map[string]any{"metadata": kept, "spec": spec}
}

// withoutDrawnNames replaces the letters that an API server draws for the volume of the account's token, and removes the made-up numbers of
// names. Whole numbers are as the predicted pod has them.
func withoutDrawnNames(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = withoutDrawnNames(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = withoutDrawnNames(child)
		}
		return out
	case int64:
		return float64(v)
	case string:
		if drawn, ok := strings.CutPrefix(v, fields.TokenVolume); ok && len(drawn) == len(fields.DrawnSuffix) {
			return fields.TokenVolume + fields.DrawnSuffix
		}
		for _, number := range numberBetween {
			v = strings.ReplaceAll(v, number, "")
		}
		return v
	}
	return v
}

// liveFields returns the fields in which the cluster's pod differs from the file or from the predicted pod.
func liveFields(p *render.AdmittedPod) []render.LiveField {
	file, predicted := comparablePod(p.Created), comparablePod(p.Pod)
	byPath := map[string]*render.LiveField{}
	for _, c := range fields.Differences(file, p.Live.Pod) {
		byPath[c.Path] = &render.LiveField{Field: c.Path, File: c.Before, Live: c.After, Predicted: c.After, AsPredicted: true}
	}
	for _, c := range fields.Differences(predicted, p.Live.Pod) {
		f := byPath[c.Path]
		if f == nil { // the cluster leaves the value of the file
			f = &render.LiveField{Field: c.Path, File: c.After, Live: c.After}
			byPath[c.Path] = f
		}
		f.Predicted, f.AsPredicted = c.Before, false
	}
	var out []render.LiveField
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		f := byPath[path]
		if i := slices.IndexFunc(p.Reasons, func(r render.Reason) bool { return r.Field == path }); i >= 0 {
			f.Reason = &p.Reasons[i]
		}
		if !f.AsPredicted {
			f.Suspects = p.Webhooks
		}
		out = append(out, *f)
	}
	return out
}

// printLive prints what the cluster answers.
func printLive(b *bytes.Buffer, p render.AdmittedPod) {
	switch {
	case p.Live.Rejected != "":
		b.WriteString("cluster: rejected: " + joinLines(p.Live.Rejected) + "\n")
	case p.Live.Unanswered != "":
		b.WriteString("cluster: not known: " + joinLines(p.Live.Unanswered) + "\n")
	}
	for _, f := range p.Live.Fields {
		b.WriteString("  " + describeLiveField(f) + "\n")
	}
}

// describeLiveField returns a line such as
// metadata.labels.five: 5 (not predicted: webhook five/five.example.com).
func describeLiveField(f render.LiveField) string {
	if f.AsPredicted && f.Reason != nil {
		return describeReason(*f.Reason)
	}
	value := changeText(f.File, f.Live)
	if reflect.DeepEqual(f.File, f.Live) {
		value = "unchanged, " + valueText(f.Live)
		if f.Live == nil {
			value = "unchanged, absent"
		}
	}
	by := "not predicted, and no webhook is known that the cluster calls for the pod"
	switch len(f.Suspects) {
	case 0:
	case 1:
		by = "not predicted: webhook " + f.Suspects[0]
	default:
		by = "not predicted: one of the webhooks " + strings.Join(f.Suspects, ", ")
	}
	if f.Reason != nil {
		by += "; predicted: " + describeReason(*f.Reason)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Field, joinLines(value), joinLines(by))
}

// exitErrorForLive returns the error for the exit code, after a cluster was asked.
func exitErrorForLive(pods []render.AdmittedPod) error {
	rejected, different, unanswered := 0, 0, 0
	for _, p := range pods {
		switch {
		case p.Live == nil || p.Live.Unanswered != "":
			unanswered++
		case p.Live.Rejected != "":
			rejected++
		case slices.ContainsFunc(p.Live.Fields, func(f render.LiveField) bool { return !f.AsPredicted }):
			different++
		}
	}
	if rejected+different+unanswered == 0 {
		return nil
	}
	return findingsError{fmt.Sprintf("of %s, the cluster rejects %d, changes %d in another way than predicted, and does not answer for %d",
		countWithNoun(len(pods), "pod"), rejected, different, unanswered)}
}
