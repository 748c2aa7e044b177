// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// sourceImage is the daemon's image in deploy.
const sourceImage = "localhost/prerig"

// makeManifests makes install.yaml, crds.yaml and the chart, with the daemon's image by digest.
func (r *release) makeManifests(context.Context) error {
	at := slices.IndexFunc(r.published, func(i image) bool { return i.product.name == command.name })
	if at < 0 {
		r.logf("  left out, as there is no image of the daemon without Linux")
		return nil
	}
	daemon := r.published[at]
	crds, err := buildKustomization(filepath.Join(r.Root, "deploy", "crds"), nil)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Prerig %s. SPDX-License-Identifier: Apache-2.0\n", r.Version)
	if err := r.writeReleaseFile("crds.yaml", append([]byte(head), crds...)); err != nil {
		return err
	}
	base, err := buildKustomization(filepath.Join(r.Root, "deploy", "base"),
		&types.Image{Name: sourceImage, NewName: daemon.name, NewTag: r.Version, Digest: daemon.digest.String()})
	if err != nil {
		return err
	}
	if !bytes.Contains(base, []byte("image: "+daemon.imageReferenceWithDigest(r.Version)+"\n")) {
		return fmt.Errorf("install.yaml does not have the image %s: deploy/base must have %s",
			daemon.imageReferenceWithDigest(r.Version), sourceImage)
	}
	if err := r.writeReleaseFile("install.yaml", slices.Concat([]byte(head), crds, []byte("---\n"), base)); err != nil {
		return err
	}
	return r.makeChart(daemon)
}

// buildKustomization builds a directory, with another image if one is specified.
func buildKustomization(dir string, image *types.Image) ([]byte, error) {
	files := filesys.MakeFsInMemory()
	source, err := readEntries(dir, "/source")
	if err != nil {
		return nil, err
	}
	for _, e := range source {
		if err := files.WriteFile(e.name, e.content); err != nil {
			return nil, err
		}
	}
	top := types.Kustomization{Resources: []string{"../source"}}
	if image != nil {
		top.Images = []types.Image{*image}
	}
	text, err := yaml.Marshal(top)
	if err != nil {
		return nil, err
	}
	if err := files.WriteFile("/top/kustomization.yaml", text); err != nil {
		return nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/top")
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	return objects.AsYaml()
}

// makeChart packs the chart as helm package does, with the version and the image in the places of those in the tree.
func (r *release) makeChart(daemon image) error {
	dir := filepath.Join(r.Root, "deploy", "chart")
	entries, err := readEntries(dir, command.name)
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.Version, "v")
	for i, e := range entries {
		lines := map[string]string{}
		switch e.name {
		case "prerig/Chart.yaml":
			lines = map[string]string{"version: ": "version: " + number, "appVersion: ": "appVersion: " + r.Version}
		case "prerig/values.yaml":
			lines = map[string]string{
				"  repository: " + sourceImage: "  repository: " + daemon.name, "  tag: ": "  tag: " + r.Version,
				"  digest: ": "  digest: " + daemon.digest.String(),
			}
		}
		for start, replacement := range lines {
			if entries[i].content, err = replaceLine(entries[i].content, start, replacement); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	license, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return err
	}
	entries = append(entries, entry{name: "prerig/LICENSE", mode: modeFile, content: license})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	// Helm reads the chart's own file first.
	slices.SortStableFunc(entries, func(a, b entry) int { return boolOrder(a.name == "prerig/Chart.yaml", b.name == "prerig/Chart.yaml") })
	text, err := packTarGz(entries, r.revision.time)
	if err != nil {
		return err
	}
	return r.writeReleaseFile(fmt.Sprintf("prerig-%s.tgz", number), text)
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// replaceLine replaces the one line that begins so.
func replaceLine(text []byte, start, replacement string) ([]byte, error) {
	lines := strings.Split(string(text), "\n")
	found := 0
	for i, line := range lines {
		if strings.HasPrefix(line, start) {
			lines[i] = replacement
			found++
		}
	}
	if found != 1 {
		return nil, fmt.Errorf("%d lines begin with %q, and it should be one", found, start)
	}
	return []byte(strings.Join(lines, "\n")), nil
}
