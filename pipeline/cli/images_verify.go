// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/images"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

func newImagesVerify(streams Streams, version string) *cobra.Command {
	o := images.Options{UserAgent: "prerig/" + version}
	var output string
	var policies, keys []string
	cmd := newCommand("verify [IMAGELOCK]...", "Report moved tags and unsigned images of an ImageLock")
	cmd.Long = `Query the registries whether the tags still resolve to the locked digests, and verify the
signatures of these digests if the policy (images.verify) or --key requires them. The policy
is that of -p, or else the nearest prerig.yaml of each lock. Nothing is changed.

  current   the tag still resolves to the locked digest
  moved     the tag now resolves to another digest
  deleted   the registry no longer has the tag
  lost      the registry no longer has the locked digest: pods cannot pull it
  unsigned  the locked digest lacks a required signature (by key, as made by cosign)

Exit codes:
  0  all tags are current
  1  some tags have moved or were deleted, or a locked digest is lost or lacks a required signature
  2  a registry could not be queried, or the lock, the policy or a key cannot be read`
	cmd.Example = `  prerig images verify
  prerig images verify -p mesh.yaml --key cosign.pub
  prerig images verify -o json k8s/imagelock.yaml`
	cmd.Flags().StringArrayVarP(&policies, "policy", "p", nil,
		"policy whose images.verify lists the required signatures; may be repeated")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "cosign public key file; each image must be signed by one of the keys; may be repeated")
	formatFlag(cmd, streams, &output, textFormats)
	registryFlags(cmd, &o)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			args = []string{lockFile}
		}
		var err error
		if o.Verify, err = verificationsFor(policies, keys, args); err != nil {
			return err
		}
		o.Unused = warnUnusedPatterns(streams)
		return verifyLocks(cmd.Context(), streams, args, o, output)
	}
	return cmd
}

// verificationsFor returns what is asked of signatures: by the policies, or where none is named by the nearest
// prerig.yaml of each lock, and by key files.
func verificationsFor(policies, keys, locks []string) ([]v1alpha1.ImageVerification, error) {
	if len(policies) == 0 {
		finder := &policy.Finder{}
		seen := map[string]bool{}
		for _, lock := range locks {
			path, err := finder.Near(filepath.Dir(lock))
			if err != nil {
				return nil, err
			}
			if path != "" && !seen[path] {
				seen[path] = true
				policies = append(policies, path)
			}
		}
	}
	var out []v1alpha1.ImageVerification
	for _, name := range policies {
		named, err := policy.Load(name)
		if err != nil {
			return nil, err
		}
		if i := named.Spec.Images; i != nil {
			out = append(out, i.Verify...)
		}
	}
	byKey, err := verificationByKeys(keys)
	return append(out, byKey...), err
}

// verificationByKeys requires a signature of every image by one of the keys; it returns nil without keys.
func verificationByKeys(files []string) ([]v1alpha1.ImageVerification, error) {
	if len(files) == 0 {
		return nil, nil
	}
	all := v1alpha1.ImageVerification{Images: "**"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the flag --key: %w", err)
		}
		all.Keys = append(all.Keys, string(text))
	}
	return []v1alpha1.ImageVerification{all}, nil
}

// warnUnusedPatterns warns of patterns that no image has matched.
func warnUnusedPatterns(streams Streams) func(string) {
	return func(pattern string) {
		fmt.Fprintf(streams.Err, "warning: images.verify: no image matches %s; a pattern must match the full name of a repository, such as docker.io/istio/*\n", pattern)
	}
}

func verifyLocks(ctx context.Context, streams Streams, names []string, o images.Options, output string) error {
	lock := &v1alpha1.ImageLock{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return missingLockError(name, err)
		}
		one, err := v1alpha1.ParseImageLock(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		lock.Spec.Images = append(lock.Spec.Images, one.Spec.Images...)
	}
	b := newBar(streams.Err, "querying registries")
	o.Progress = b.setImageProgress
	statuses, err := images.Verify(ctx, lock, o)
	b.clearLine()
	if err != nil {
		return err
	}
	if err := printStatuses(streams, statuses, output); err != nil {
		return err
	}
	count := map[images.State]int{}
	for _, s := range statuses {
		count[s.State]++
	}
	moved := len(statuses) - count[images.Current] - count[images.Unknown]
	switch {
	case count[images.Unknown] > 0:
		return fmt.Errorf("%s could not be checked", countWithNoun(count[images.Unknown], "image"))
	case moved > 0:
		return findingsError{fmt.Sprintf("%d of %s not as locked, or not signed; run prerig images pin and review the change", moved, countWithNoun(len(statuses), "image"))}
	}
	return nil
}

func printStatuses(streams Streams, statuses []images.Status, output string) error {
	if output != "text" {
		return writeStructured(streams.Out, output, map[string]any{"images": append([]images.Status{}, statuses...)})
	}
	var b strings.Builder
	for _, s := range statuses {
		fmt.Fprintf(&b, "%-8s  %s", s.State, s.Image)
		if s.Signed {
			b.WriteString("  signed")
		}
		switch s.State {
		case images.Moved:
			fmt.Fprintf(&b, "  %s -> %s", s.Locked, s.Now)
		case images.Deleted, images.Lost:
			fmt.Fprintf(&b, "  %s", s.Locked)
		case images.Unsigned, images.Unknown:
			fmt.Fprintf(&b, "  %s", strings.ReplaceAll(s.Message, "\n", " "))
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(streams.Out, b.String())
	return err
}
