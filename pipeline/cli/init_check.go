// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/cli/scaffold"
)

// checkFlags refuses flags that do not fit each other.
func (in *initRun) checkFlags() error {
	given := in.cmd.Flags().Changed
	if in.from == scaffold.BuiltIn {
		if _, err := os.Stat(in.from); errors.Is(err, fs.ErrNotExist) {
			in.from = fromBuiltIn
		}
	}
	if (given("kubeconfig") || given("context")) && !given("from") {
		in.from = fromCluster
		mustRegister(in.cmd.Flags().Set("from", fromCluster))
	}
	switch {
	case in.from != fromCluster && (given("kubeconfig") || given("context")):
		return errors.New("--kubeconfig and --context require --from cluster")
	case in.source == "" && !in.canAskUser() && slices.ContainsFunc([]string{"branch", "publish", "name", "pipelines", "builds"}, given):
		return errors.New("--branch, --publish, --name, --pipelines and --builds apply to pipelines; set --source")
	case in.source != "" && given("builds") && !in.repository.isSource(in.source):
		return errors.New("--builds requires --source .: another repository is not inspected; run init in a clone of it")
	}
	if given("from") || !in.canAskUser() {
		if err := in.checkFrom(); err != nil {
			return err
		}
	}
	// An error in the written files would name lines of files that are not written.
	if in.branch != "" && in.branch == in.publish {
		return fmt.Errorf("--publish %s is the branch of the source; choose another branch", in.publish)
	}
	return nil
}

// checkFrom rejects flags about an import without one.
func (in *initRun) checkFrom() error {
	if in.from != fromBuiltIn {
		return nil
	}
	for _, flag := range []string{"values", "revision", "istio-version", "istio-namespace"} {
		if in.cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s applies to an import, and the policy is based on the built-in one; set --from %s, or --from with a chart or manifests", flag, fromCluster)
		}
	}
	return nil
}

// checkThere finds out before anything is asked whether the policy may be written.
func (in *initRun) checkThere() error {
	if _, err := os.Lstat(in.to); errors.Is(err, fs.ErrNotExist) || in.force {
		return nil
	}
	for _, flag := range []string{"from", "namespaces", "values", "kubernetes-version", "istio-version", "revision", "istio-namespace"} {
		if in.cmd.Flags().Changed(flag) {
			return fmt.Errorf("%s already exists, and --%s requires a new one; use --force to replace it, or --to to write another file", in.to, flag)
		}
	}
	if _, err := policy.Load(in.to); err != nil {
		return fmt.Errorf("%s already exists and is not a policy; use --force to replace it, or --to to write another file: %w", in.to, err)
	}
	in.keepPolicy = true
	return nil
}
