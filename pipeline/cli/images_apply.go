// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
)

// imagesApply is the state of one prerig images apply. What becomes of the files is as with prerig inject.
type imagesApply struct {
	injectRun
	locks   []string
	missing string
}

// missingActions are the values of --on-missing.
var missingActions = map[string]pin.OnMissing{"ignore": pin.Ignore, "warn": pin.Warn, "fail": pin.Fail}

func newImagesApply(streams Streams) *cobra.Command {
	a := &imagesApply{injectRun: injectRun{manifestRun: manifestRun{streams: streams}, wantedBy: "lock"}}
	cmd := newCommand("apply [FILE|DIRECTORY]...", "Write the digests of an ImageLock into manifests, without a policy")
	cmd.Long = `Write the digests of an ImageLock into the images of all containers, init containers and
ephemeral containers of the workloads in the input. No policy is read, nothing is injected and
no registry is queried. An image in the lock gets its digest after the tag, which replaces an
older digest; every other byte is left unchanged.

To do the same during injection, use a policy with spec.images and scope: All.

Exit codes:
  0  success; with --diff also if there are differences
  1  --check: an image in the lock lacks its digest
  2  invalid input, lock or flag, or a read or write error`
	cmd.Example = `  prerig images pin --own k8s/
  prerig images apply --diff k8s/
  prerig images apply -i k8s/
  prerig images apply --check --on-missing fail k8s/`
	f := cmd.Flags()
	f.StringArrayVarP(&a.files, "filename", "f", nil,
		"file or directory to read, - for standard input; may be repeated")
	excludeFlag(cmd, &a.exclude)
	f.StringArrayVarP(&a.locks, "lock", "l", []string{lockFile}, "ImageLock file; may be repeated")
	f.StringVar(&a.missing, "on-missing", "ignore",
		"how to treat an image that has no digest and is not in the lock: ignore, warn or fail")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print warnings and errors only")
	f.BoolVarP(&a.inPlace, "in-place", "i", false,
		"change the files in place: all of them, or none if there is an error")
	f.BoolVar(&a.diff, "diff", false, "print a unified diff; manifests are written only with -i or --to")
	f.BoolVar(&a.check, "check", false, "write nothing, and exit with 1 if a file lacks the digests")
	f.StringVar(&a.colour, "color", "auto", "when to colour the diff: auto, always or never")
	a.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runApply(cmd.Context(), args) }
	return cmd
}

func (a *imagesApply) runApply(ctx context.Context, args []string) error {
	missing, ok := missingActions[a.missing]
	if !ok {
		return fmt.Errorf("--on-missing is %q; it can be ignore, warn or fail", a.missing)
	}
	if err := a.checkColour(); err != nil {
		return err
	}
	lock, err := readLocks(a.locks)
	if err != nil {
		return err
	}
	b, err := a.readFiles(ctx, args)
	if err != nil {
		return err
	}
	a.printResults(b.Notes())
	run := func() (*fn.Report, error) { return b.Pin(lock, missing) }
	report, err := run()
	if err != nil {
		return err
	}
	return a.finishRun(ctx, b, report, run)
}

// readLocks reads ImageLock files.
func readLocks(names []string) (*pin.Lock, error) {
	var locks []*v1alpha1.ImageLock
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, missingLockError(name, err)
		}
		lock, err := v1alpha1.ParseImageLock(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		locks = append(locks, lock)
	}
	return pin.NewLock(nil, locks...)
}

// missingLockError explains how to create a lock that does not exist.
func missingLockError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the lock %s: no such file; create it with prerig images pin", name)
	}
	return fmt.Errorf("reading the lock: %w", err)
}
