// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// flagSynonyms are flags of other programs, with what they are called here.
var flagSynonyms = map[string]string{
	"severity": "fail-on", "level": "fail-on", "out": "to", "out-file": "to", "output-file": "to", "output-dir": "to",
	"format": "output",
	"file":   "filename", "ignore": "exclude", "write": "in-place", "inplace": "in-place",
	"k8s-version": "kubernetes-version",
}

// flagHint suggests a flag for one that a command does not have.
func flagHint(cmd *cobra.Command, err error) string {
	text := err.Error()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if long, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		if same, ok := flagSynonyms[long]; ok && cmd.Flags().Lookup(same) != nil {
			return ", did you mean --" + same + "?"
		}
		if near := strict.Closest(long, names); near != "" {
			return ", did you mean --" + near + "?"
		}
		if near := withPrefix(names, long); len(long) > 1 && len(near) > 0 {
			return ", did you mean --" + strings.Join(near, " or --") + "?"
		}
		return ""
	}
	switch {
	case strings.Contains(text, `time: unknown unit "d"`):
		return "; use hours, such as 72h"
	case strings.Contains(text, "strconv.ParseBool"):
		return "; it is true without a value, or false with =false"
	case strings.Contains(text, "strconv.Parse"):
		return "; it must be a whole number"
	}
	if letter, ok := strings.CutPrefix(text, "unknown shorthand flag: '"); ok && letter != "" {
		if near := withPrefix(names, letter[:1]); len(near) > 0 {
			return ", did you mean --" + strings.Join(near, " or --") + "?"
		}
	}
	return ""
}

// withPrefix returns the first names that begin with a text.
func withPrefix(names []string, prefix string) (out []string) {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && len(out) < named {
			out = append(out, name)
		}
	}
	return out
}

// checkVersions has the flags of a command and those below it that are versions checked, by their names.
func checkVersions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkVersions(sub)
	}
	if cmd.Flags().Lookup("istio-version") == nil && cmd.Flags().Lookup("kubernetes-version") == nil {
		return
	}
	addCheck(cmd, func() error {
		istio, _ := cmd.Flags().GetString("istio-version") // "" where the command has no such flag
		if istio != "" && !v1alpha1.IsIstioVersion(istio) {
			return fmt.Errorf("--istio-version is %q; it must be a version of Istio, such as 1.31 or 1.31.0", istio)
		}
		kubernetes, _ := cmd.Flags().GetString("kubernetes-version")
		return checkKubernetesVersion(kubernetes)
	})
}

// oldestKubernetes is the oldest minor version of Kubernetes 1 whose API server calls webhooks that inject.
const oldestKubernetes = 9

// checkKubernetesVersion refuses a value of --kubernetes-version that no cluster can have.
func checkKubernetesVersion(text string) error {
	const flag = "--kubernetes-version"
	if text == "" {
		return nil
	}
	if !v1alpha1.IsKubernetesVersion(text) {
		hint := ""
		if len(text) == 3 && strings.HasPrefix(text, "1") && !strings.ContainsAny(text, ".v") {
			hint = fmt.Sprintf(", did you mean 1.%s?", text[1:])
		}
		return fmt.Errorf("%s is %q; it must be a version of Kubernetes, such as 1.34%s", flag, text, hint)
	}
	var minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, "v"), "1.%d", &minor); err != nil || minor < oldestKubernetes {
		return fmt.Errorf("%s is %q; sidecar injection needs Kubernetes 1.%d or newer (the newest known version is %s)",
			flag, text, oldestKubernetes, gate.NewestKubernetes)
	}
	return nil
}

// pathHint suggests the command for a path in its place.
func pathHint(word string) string {
	if info, err := os.Stat(word); err == nil && (info.IsDir() || strings.ContainsAny(word, "./")) {
		return "; did you mean prerig inject " + quoteShellWord(word) + "?"
	}
	return ""
}
