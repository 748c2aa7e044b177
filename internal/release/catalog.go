// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import "strings"

type object = map[string]any

// download is the archive of a build, as package managers fetch it.
type download struct {
	build
	url, digest string // digest is sha256 in hex
}

// downloadsOf returns the downloads of a product.
func (r *release) downloadsOf(product string) []download {
	var out []download
	for _, b := range r.builds {
		if b.product.name == product {
			out = append(out, download{b, r.URL + "/" + b.archive, r.digests[b.archive]})
		}
	}
	return out
}

// krewManifest returns the manifest for krew, with which kubectl prerig is the command.
func krewManifest(version string, downloads []download) object {
	var platforms []any
	for _, b := range downloads {
		moved := []any{object{"from": "LICENSE", "to": "."}, object{"from": "THIRD-PARTY", "to": "."}}
		for _, one := range b.binaries {
			moved = append(moved, object{"from": one.executableFileName(), "to": "."})
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": b.platform.OS, "arch": b.platform.Arch}},
			"uri":      b.url, "sha256": b.digest, "files": moved,
			"bin": b.binaries[len(b.binaries)-1].executableFileName(),
		})
	}
	return object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": object{"name": command.name},
		"spec": object{
			"version": version, "homepage": "https://github.com/prerig/prerig",
			"shortDescription": "Inject sidecars at build time",
			"description": "Prerig adds the sidecars of a service mesh to manifests before they reach a cluster,\n" +
				"just as the mesh's admission webhook would. Injecting needs no cluster and no network.\n",
			"platforms": platforms,
		},
	}
}

// fluxPlugin returns the manifest for the plugins of flux (its RFC-0013), with which flux prerig is the
// command. Flux installs a single program: commands that render or check need prerig-render next to it, and report
// if it is missing.
func fluxPlugin(version string, downloads []download) object {
	var platforms []any
	for _, b := range downloads {
		platforms = append(platforms, object{
			"os": b.platform.OS, "arch": b.platform.Arch, "url": b.url, "checksum": "sha256:" + b.digest,
			"extractPath": b.binaries[len(b.binaries)-1].executableFileName(),
		})
	}
	const home = "https://github.com/prerig/prerig"
	return object{
		"apiVersion": "cli.fluxcd.io/v1beta1", "kind": "Plugin", "name": command.name, "bin": "flux-" + command.name,
		"description": command.productSummary(), "homepage": home, "source": home,
		"versions": []any{object{"version": strings.TrimPrefix(version, "v"), "platforms": platforms}},
	}
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
	for _, b := range r.downloadsOf(function.name) {
		programs = append(programs, object{
			"os": b.platform.OS, "arch": b.platform.Arch, "uri": b.url, "sha256": b.digest,
			"bin": b.binaries[0].executableFileName(),
		})
	}
	return r.writeYAML("kustomize-catalog.yaml", object{
		"apiVersion": "config.kubernetes.io/v1alpha1", "kind": "Catalog", "metadata": object{"name": command.name},
		"spec": object{"krmFunctions": []any{object{
			"group": "prerig.dev", "names": object{"kind": "InjectionPolicy"}, "description": products[1].summary,
			"publisher": "The Prerig Authors", "home": home,
			"versions": []any{object{
				"name": "v1alpha1", "maintainers": []any{"The Prerig Authors"}, "license": "Apache-2.0",
				"usage": source + "/docs/function.md",
				"runtime": object{
					"container": object{"image": reference, "sha256": digest, "requireNetwork": false},
					"exec":      object{"platforms": programs},
				},
			}},
		}}},
	})
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
