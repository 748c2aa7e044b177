// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newArgoCD returns the command that Argo CD runs as a Config Management Plugin. It is a separate command because a
// plugin's arguments are fixed: the differences between applications are in the environment, and an image that
// contains only prerig has no shell to read it.
func newArgoCD(streams Streams, version string) *cobra.Command {
	var pipelines, policies string
	cmd := newCommand("argocd-plugin", "Render an application as an Argo CD plugin")
	cmd.Long = `Print the manifests of one pipeline, as the generate command of an Argo CD Config Management
Plugin. Argo CD runs it in the application's directory of a checkout (ARGOCD_APP_SOURCE_PATH);
the checkout is used as the pipeline's source. The pipeline is selected by the plugin's
parameter "pipeline", or else by the application's environment variable PIPELINE. By default,
it has the application's name, whatever the application's namespace.`
	cmd.Args = noArguments
	cmd.Flags().StringVar(&pipelines, "pipelines", "pipelines", "directory in the repository with RenderPipeline files")
	cmd.Flags().StringVar(&policies, "policies", "policies",
		"directory in the repository with the policies that pipelines reference by policies[].file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, err := repositoryRoot(os.Getenv("ARGOCD_APP_SOURCE_PATH"))
		if err != nil {
			return err
		}
		pipeline := firstSet("PARAM_PIPELINE", "ARGOCD_ENV_PIPELINE")
		if pipeline == "" {
			pipeline = applicationName(os.Getenv("ARGOCD_APP_NAME"))
		}
		if pipeline == "" {
			return errors.New("finding the pipeline: ARGOCD_APP_NAME is not set; Argo CD sets it")
		}
		render := newRender(streams, version)
		render.SetArgs([]string{
			"--pipelines", filepath.Join(root, pipelines), "--policies", filepath.Join(root, policies), "--source",
			root,
			"--cache", filepath.Join(os.TempDir(), "prerig"), "--", pipeline,
		})
		return render.ExecuteContext(cmd.Context())
	}
	return cmd
}

func firstSet(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// applicationName returns the name of an application from Argo CD's form, which is NAMESPACE_NAME outside of Argo
// CD's own namespace. Neither part can contain an underscore.
func applicationName(told string) string {
	return told[strings.Index(told, "_")+1:]
}

// repositoryRoot is the root of the repository, which is above the working directory by the application's path.
func repositoryRoot(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	path = filepath.Clean(filepath.FromSlash(path))
	if path == "." {
		return dir, nil
	}
	root, ok := strings.CutSuffix(dir, string(filepath.Separator)+path)
	if !ok {
		return "", fmt.Errorf("finding the repository: the working directory %s is not the application's %s", dir, path)
	}
	return root, nil
}
