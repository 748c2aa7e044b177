// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/images"
)

// lockFile is the default path of the lock.
const lockFile = "imagelock.yaml"

func newImages(streams Streams, version string) *cobra.Command {
	cmd := newCommand("images", "Pin images to digests, and detect moved tags")
	cmd.Long = `Pin container images to digests, so that the images that run are those that were reviewed.

pin queries the registries and writes an ImageLock file. If a policy references it
(spec.images.lock), injection writes its digests, offline. apply writes them into manifests
without a policy. verify reports which tags have moved since.

The credentials of docker login and podman login are used, including credential helpers.`
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newImagesPin(streams, version), newImagesApply(streams), newImagesVerify(streams, version))
	return cmd
}

// registryFlags adds the flags that control how registries are queried.
func registryFlags(cmd *cobra.Command, o *images.Options) {
	f := cmd.Flags()
	f.IntVar(&o.Jobs, "jobs", 8, "number of images to query at once")
	f.DurationVar(&o.Timeout, "timeout", 20*time.Second, "timeout of one request")
	f.IntVar(&o.Retry.Attempts, "attempts", 6, "number of attempts for a request that fails with a temporary error")
}

// imagesPin is the state of one prerig images pin.
type imagesPin struct {
	manifestRun
	options images.Options
	images  []string
	destination
	name string
	// own uses the images of the files unchanged, and all reports whether the policy of a group requires all images
	// to be pinned.
	own  bool
	keys []string
	all  map[*policyGroup]bool
}

func newImagesPin(streams Streams, version string) *cobra.Command {
	p := &imagesPin{manifestRun: manifestRun{streams: streams}, options: images.Options{UserAgent: "prerig/" + version}}
	cmd := newCommand("pin [FILE|DIRECTORY]...", "Resolve image tags to digests, and write an ImageLock")
	cmd.Long = `Inject the files in memory, resolve the tag of every injected image to its current digest, and
write an ImageLock file. Without files, the images are those that the policy injects into a
plain Deployment. If the policy has images: {scope: All}, the images of the workloads' own
containers are resolved too; --own resolves only these, without a policy.

A multi-platform image is pinned to its index, so that each node still pulls the image for its
platform. Signatures required by the policy (images.verify) or by --key are verified by key,
as made by cosign; transparency logs are not queried. If any image fails to resolve or lacks a
required signature, the file is left unchanged.

Exit codes:
  0  success
  2  an image does not resolve, or lacks a platform or a required signature, or the input, the
     policy or a flag is invalid`
	cmd.Example = `  prerig images pin -p mesh.yaml
  prerig images pin -p mesh.yaml --platform linux/amd64 --platform linux/arm64 k8s/
  prerig images pin --own k8s/
  prerig images pin --image docker.io/istio/proxyv2:1.31.0 --to -`
	p.addFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&p.images, "image", nil, "additional image to resolve; may be repeated. Without files and -p, only these are resolved")
	f.BoolVar(&p.own, "own", false, "resolve the images of all containers in the files as they are, without a policy")
	f.StringArrayVar(&p.keys, "key", nil, "cosign public key file; each image must be signed by one of the keys; may be repeated")
	f.StringArrayVar(&p.options.Platforms, "platform", nil,
		"platform that every image must support, such as linux/arm64; may be repeated")
	p.destinationFlags(cmd, streams, lockFile, "file to write, - for standard output", manifestFormats)
	f.StringVar(&p.name, "name", "images", "name of the ImageLock, for spec.images.lock of a policy")
	registryFlags(cmd, &p.options)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return p.runPin(cmd.Context(), args) }
	return cmd
}

func (p *imagesPin) runPin(ctx context.Context, args []string) error {
	wanted, err := p.collectImages(ctx, args)
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return errors.New("resolving images: no workload in the input is injected; specify files with injected workloads, or images with --image")
	}
	byKey, err := verificationByKeys(p.keys)
	if err != nil {
		return err
	}
	p.options.Verify = append(p.options.Verify, byKey...)
	p.options.Unused = warnUnusedPatterns(p.streams)
	b := newBar(p.streams.Err, "resolving images")
	p.options.Progress = b.setImageProgress
	lock, err := images.Pin(ctx, p.name, wanted, p.options)
	b.clearLine()
	if err != nil {
		return err
	}
	data, err := v1alpha1.MarshalImageLock(lock)
	if err != nil {
		return err
	}
	return p.writeLock(ctx, data, len(lock.Spec.Images))
}

// collectImages returns the images that the policy injects, and those that were named.
func (p *imagesPin) collectImages(ctx context.Context, args []string) ([]string, error) {
	out := slices.Clone(p.images)
	named := len(args) > 0 || len(p.files) > 0
	if !named && len(p.policies) == 0 && !p.kubeInject.Given() && len(p.images) > 0 {
		return out, nil
	}
	if named {
		if _, err := p.readFiles(ctx, args); err != nil {
			return nil, err
		}
		if err := p.checkAnyManifest(); err != nil {
			return nil, err
		}
	}
	if p.own {
		return p.imagesInFiles(out)
	}
	if err := p.loadPolicies(); err != nil {
		return nil, err
	}
	p.all = map[*policyGroup]bool{}
	for _, g := range p.groups {
		for _, policy := range g.policies {
			if i := policy.Spec.Images; i != nil {
				p.all[g] = p.all[g] || i.Scope == v1alpha1.ScopeAll
				p.options.Verify = append(p.options.Verify, i.Verify...)
			}
			policy.Spec.Images, policy.Spec.Lint = nil, nil // the tags are needed, and the lock may not exist yet
		}
	}
	if !named {
		b, err := injectableSample(p.allPolicies())
		if err != nil {
			return nil, err
		}
		p.batch, p.groups[0].batch = b, b
	}
	found, err := p.injectedImages(ctx)
	return append(out, found...), err
}

// imagesInFiles returns the images of the files as they are, and those that were named.
func (p *imagesPin) imagesInFiles(named []string) ([]string, error) {
	if p.batch == nil {
		return nil, errors.New("resolving the images of files: --own requires files or directories")
	}
	p.printNotices()
	found, report, err := p.batch.Images()
	if err != nil {
		return nil, err
	}
	if report.Failed() {
		p.printResults(failedResults(report.Results))
		return nil, errReported
	}
	for _, image := range found {
		if tagged, ok := pin.Tag(image); ok {
			image = tagged // an earlier lock has added the digest
		}
		if image != "auto" {
			named = append(named, image)
		}
	}
	return named, nil
}

// sampleWorkload asks for an injection in every way that a pod can.
const sampleWorkload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: sample
spec:
  template:
    metadata:
      labels:
        sidecar.istio.io/inject: "true"
    spec:
      containers:
      - name: app
        image: example.com/app:1
`

// injectableSample returns a workload that the policies inject into, whatever namespaces and webhooks they know.
func injectableSample(ps []*v1alpha1.InjectionPolicy) (*batch.Batch, error) {
	for _, p := range ps {
		p.Spec.UnknownNamespace = v1alpha1.UnknownNamespaceInject
		for i, one := range p.Spec.Namespaces { // what holds for the whole mesh is in one of them
			p.Spec.Namespaces[i] = v1alpha1.Namespace{Name: one.Name, ProxyConfigs: one.ProxyConfigs}
		}
		if p.Spec.Istio != nil {
			p.Spec.Istio.Webhooks = nil
		}
	}
	return batch.Parse([]files.Input{{Path: "sample", Rel: "sample", Data: []byte(sampleWorkload)}})
}

// injectedImages returns the images of the containers that an injection adds or changes, or of all where the policy
// wants all pinned.
func (p *imagesPin) injectedImages(ctx context.Context) ([]string, error) {
	report, err := p.runPolicies(ctx, v1alpha1.ModeInject, fn.WithPods())
	if err != nil {
		return nil, err
	}
	if report.Failed() {
		p.printResults(failedResults(report.Results))
		return nil, errReported
	}
	var out []string
	for _, g := range p.groups {
		for _, o := range g.report.Outcomes {
			before := pin.Images(o.Before)
			for name, image := range pin.Images(o.After) {
				if old, ok := before[name]; image != "auto" && (!ok || old != image || p.all[g]) {
					out = append(out, image)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func failedResults(rs result.Results) result.Results {
	return slices.DeleteFunc(slices.Clone(rs), func(r result.Result) bool { return r.Severity != result.Error })
}

// writeLock writes the lock atomically, and only if it differs.
func (p *imagesPin) writeLock(ctx context.Context, data []byte, n int) error {
	data, err := inFormat(p.format, data)
	if err != nil {
		return err
	}
	if !p.writesFile() {
		_, err := p.streams.Out.Write(data)
		return err
	}
	old, err := os.ReadFile(p.to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing the lock: %w", err)
	}
	if err == nil && bytes.Equal(old, data) {
		p.printStatus("%s: %s locked, no change\n", p.to, countWithNoun(n, "image"))
		return nil
	}
	out, err := files.To(p.to, data)
	if err != nil {
		return err
	}
	if err := files.Write(ctx, []files.Output{out}, nil); err != nil {
		return err
	}
	p.printStatus("%s: %s locked\n", p.to, countWithNoun(n, "image"))
	return nil
}

func (p *imagesPin) printStatus(text string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.streams.Err, text, args...)
	}
}
