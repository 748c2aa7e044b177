// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio"
)

// Case is one entry of cases.yaml. Paths are relative to the version's directory.
type Case struct {
	Name     string `json:"name"`
	Input    string `json:"input"`
	Expected string `json:"expected"`
	Config   string `json:"config"`
	Values   string `json:"values"`
	Mesh     string `json:"mesh"`
	// NativeSidecars is the setting of the mesh.
	NativeSidecars bool   `json:"nativeSidecars"`
	Revision       string `json:"revision"`
	// Path is the code path of Istio that wrote the expected output: kube-inject or webhook.
	Path      string `json:"path"`
	BothPaths bool   `json:"bothPaths"`
	// ExpectError is a part of the error's text in lower case, ExpectWarning a part of a warning.
	ExpectError          string                       `json:"expectError"`
	ExpectWarning        string                       `json:"expectWarning"`
	IstiodEnv            map[string]string            `json:"istiodEnv"`
	NamespaceAnnotations map[string]map[string]string `json:"namespaceAnnotations"`
	OpenShift            bool                         `json:"openshift"`
	CompliancePolicy     string                       `json:"compliancePolicy"`

	dir     string
	version istio.Version
}

// Version is one directory of a corpus.
type Version struct {
	Dir     string
	Version istio.Version
	Cases   []*Case
}

// Load reads a corpus: a directory of versions, or the directory of one. Versions come in their order.
func Load(dir string) ([]*Version, error) {
	if _, err := os.Stat(filepath.Join(dir, "cases.yaml")); err == nil {
		v, err := loadVersion(dir)
		if err != nil {
			return nil, err
		}
		return []*Version{v}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the corpus: %w", err)
	}
	var out []*Version
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(sub, "cases.yaml")); err != nil {
			continue
		}
		v, err := loadVersion(sub)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading the corpus: %s has no directory with a cases.yaml", dir)
	}
	slices.SortFunc(out, func(a, b *Version) int {
		if a.Version.Minor != b.Version.Minor {
			return a.Version.Minor - b.Version.Minor
		}
		return a.Version.Patch - b.Version.Patch
	})
	return out, nil
}

func loadVersion(dir string) (*Version, error) {
	version, ok := istio.ParseVersion(filepath.Base(dir))
	if !ok {
		return nil, fmt.Errorf("reading the corpus: the directory %s is not called by an Istio version", dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cases.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the corpus: %w", err)
	}
	v := &Version{Dir: dir, Version: version}
	if err := yaml.Unmarshal(text, &v.Cases); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, "cases.yaml"), err)
	}
	for _, c := range v.Cases {
		c.dir, c.version = dir, version
	}
	return v, nil
}

// readCaseFile returns the text of one of the case's files; no path is no text.
func (c *Case) readCaseFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		return "", fmt.Errorf("reading a file of case %s: %w", c.Name, err)
	}
	return string(text), nil
}

// ID is VERSION/NAME.
func (c *Case) ID() string { return c.version.String() + "/" + c.Name }
