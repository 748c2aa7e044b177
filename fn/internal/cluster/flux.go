// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// KustomizeController is the name of Flux' kustomize-controller for Build.
const KustomizeController = "kustomize-controller"

// FluxDefinitions returns the files of the CustomResourceDefinitions that kustomize-controller needs, out of the modules of Flux in the
// versions that upstream/flux pins: Kustomization, and all kinds of sources, without one of which it ends.
func FluxDefinitions(ctx context.Context, upstream string) ([]string, error) {
	module := filepath.Join(upstream, "flux")
	var out []string
	for _, one := range []struct {
		pinned, module, group string
		kinds                 []string
	}{
		{"github.com/fluxcd/kustomize-controller", "github.com/fluxcd/kustomize-controller", "kustomize", []string{"kustomizations"}},
		{"github.com/fluxcd/source-controller/api", "github.com/fluxcd/source-controller", "source", []string{
			"externalartifacts", "gitrepositories", "ocirepositories", "buckets",
		}},
	} {
		var pinned, found struct{ Version, Dir string }
		if err := goJSON(ctx, module, &pinned, "list", "-m", "-json", one.pinned); err != nil {
			return nil, err
		}
		if err := goJSON(ctx, module, &found, "mod", "download", "-json", one.module+"@"+pinned.Version); err != nil {
			return nil, err
		}
		for _, kind := range one.kinds {
			out = append(out, filepath.Join(found.Dir, "config", "crd", "bases", one.group+".toolkit.fluxcd.io_"+kind+".yaml"))
		}
	}
	return out, nil
}

// goJSON runs the go command in a module, and reads what it prints.
func goJSON(ctx context.Context, module string, into any, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = module
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("running go %v: %w\n%s", args, err, text)
	}
	return json.Unmarshal(text, into)
}
