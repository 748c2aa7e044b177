// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/prerig/prerig/fn/api/v1alpha1"
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
		return errors.New("--kubeconfig and --context are for a cluster; give --from cluster")
	case in.source == "" && !in.asks() && (given("branch") || given("publish") || given("name") || given("pipelines")):
		return errors.New("--branch, --publish, --name and --pipelines are about a pipeline; give its --source")
	}
	if given("from") || !in.asks() {
		if err := in.checkFrom(); err != nil {
			return err
		}
	}
	return in.checkValues()
}

// checkFrom rejects flags about an import without one.
func (in *initRun) checkFrom() error {
	if in.from != fromBuiltIn {
		return nil
	}
	for _, flag := range []string{"values", "revision", "istio-version", "istio-namespace"} {
		if in.cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about what is imported, and the policy is made of the built-in one; give --from %s, or --from with a chart or manifests", flag, fromCluster)
		}
	}
	return nil
}

// checkValues rejects values that would make the written files invalid: an error there names lines of files that
// are not written.
func (in *initRun) checkValues() error {
	if in.kubernetes != "" && !v1alpha1.IsKubernetesVersion(in.kubernetes) {
		return fmt.Errorf("--kubernetes-version %s is not a version of Kubernetes, such as 1.34", in.kubernetes)
	}
	if in.branch != "" && in.branch == in.publish {
		return fmt.Errorf("--publish %s is the branch that is rendered from; take another branch", in.publish)
	}
	return nil
}

// checkThere finds out before anything is asked whether the policy may be written.
func (in *initRun) checkThere() error {
	if _, err := os.Lstat(in.output); errors.Is(err, fs.ErrNotExist) || in.force {
		return nil
	}
	for _, flag := range []string{"from", "namespaces", "values", "kubernetes-version", "istio-version", "revision", "istio-namespace"} {
		if in.cmd.Flags().Changed(flag) {
			return fmt.Errorf("%s is there already, and --%s asks for another one; --force replaces it, -o writes a file beside it", in.output, flag)
		}
	}
	if _, err := policy.Load(in.output); err != nil {
		return fmt.Errorf("%s is there already and is no policy; --force replaces it, -o writes another file: %w", in.output, err)
	}
	in.keepPolicy = true
	return nil
}
