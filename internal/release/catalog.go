// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// makeKrew makes the manifest for krew, with which kubectl prerig is the command.
func (r *release) makeKrew() error {
	var platforms []any
	for _, b := range r.builds {
		if b.product.name != command.name {
			continue
		}
		moved := []any{object{"from": "LICENSE", "to": "."}, object{"from": "THIRD-PARTY", "to": "."}}
		for _, one := range b.binaries {
			moved = append(moved, object{"from": one.executableFileName(), "to": "."})
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": b.platform.OS, "arch": b.platform.Arch}},
			"uri":      r.URL + "/" + b.archive, "sha256": r.digests[b.archive], "files": moved, "bin": b.binaries[len(b.binaries)-1].executableFileName(),
		})
	}
	return r.writeYAML("krew.yaml", object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": object{"name": command.name},
		"spec": object{
			"version": r.Version, "homepage": "https://github.com/prerig/prerig", "shortDescription": "Inject sidecars at build time",
			"description": "Prerig adds the sidecars of a service mesh to manifests before they reach a cluster,\n" +
				"just as the mesh's admission webhook would. Injecting needs no cluster and no network.\n",
			"platforms": platforms,
		},
	})
}

// makeFluxPlugin creates the manifest for the plugins of flux (its RFC-0013), with which flux prerig is the
// command. Flux installs a single program: commands that render or check need prerig-render next to it, and report
// if it is missing.
func (r *release) makeFluxPlugin() error {
	var platforms []any
	for _, b := range r.builds {
		if b.product.name != command.name {
			continue
		}
		platforms = append(platforms, object{
			"os": b.platform.OS, "arch": b.platform.Arch, "url": r.URL + "/" + b.archive, "checksum": "sha256:" + r.digests[b.archive],
			"extractPath": b.binaries[len(b.binaries)-1].executableFileName(),
		})
	}
	const home = "https://github.com/prerig/prerig"
	return r.writeYAML("flux-plugin.yaml", object{
		"apiVersion": "cli.fluxcd.io/v1beta1", "kind": "Plugin", "name": command.name, "bin": "flux-" + command.name,
		"description": command.productSummary(), "homepage": home, "source": home,
		"versions": []any{object{"version": strings.TrimPrefix(r.Version, "v"), "platforms": platforms}},
	})
}

// makeCatalogs makes what kpt's catalog and kustomize's (KEP-2906) want to know of the function.
func (r *release) makeCatalogs() error {
	var reference, digest string
	for _, i := range r.published {
		if i.product.name == function.name {
			reference, digest = i.imageReferenceWithDigest(r.Version), i.digest.Hex
		}
	}
	if reference == "" {
		return nil
	}
	const home = "https://github.com/prerig/prerig"
	source := home + "/tree/" + r.Version
	err := r.writeYAML("kpt-function.yaml", object{
		"image": reference, "description": products[1].summary, "tags": []any{"mutator", "sidecar", "istio"},
		"sourceURL": source + "/fn", "examplePackageURLs": []any{source + "/examples/kpt-container"},
		"emails": []any{"maintainers@prerig.dev"}, "license": "Apache-2.0", "hidden": false, "network": false,
	})
	if err != nil {
		return err
	}
	var programs []any
	for _, b := range r.builds {
		if b.product.name == function.name {
			programs = append(programs, object{
				"os": b.platform.OS, "arch": b.platform.Arch, "uri": r.URL + "/" + b.archive, "sha256": r.digests[b.archive], "bin": b.binaries[0].executableFileName(),
			})
		}
	}
	return r.writeYAML("kustomize-catalog.yaml", object{
		"apiVersion": "config.kubernetes.io/v1alpha1", "kind": "Catalog", "metadata": object{"name": command.name},
		"spec": object{"krmFunctions": []any{object{
			"group": "prerig.dev", "names": object{"kind": "InjectionPolicy"}, "description": products[1].summary,
			"publisher": "The Prerig Authors", "home": home,
			"versions": []any{object{
				"name": "v1alpha1", "maintainers": []any{"The Prerig Authors"}, "license": "Apache-2.0", "usage": source + "/docs/function.md",
				"runtime": object{
					"container": object{"image": reference, "sha256": digest, "requireNetwork": false},
					"exec":      object{"platforms": programs},
				},
			}},
		}}},
	})
}

func (r *release) writeYAML(name string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return r.writeReleaseFile(name, text)
}

// changelogSection returns the text under a heading of a changelog, without the heading, or "" if none exists.
func changelogSection(changelog, heading string) string {
	_, after, found := strings.Cut("\n"+changelog, "\n## "+heading)
	if !found {
		return ""
	}
	_, after, _ = strings.Cut(after, "\n") // the rest of the heading, such as a date
	text, _, _ := strings.Cut(after, "\n## ")
	return strings.TrimSpace(text)
}
