// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apis "github.com/fluxcd/pkg/apis/kustomize"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// ReadDirectory returns the kustomization of a directory, and the name of its file. Where the directory has none, it
// names the manifests below it, as kustomize-controller writes one then. Directories are absolute.
func ReadDirectory(files filesys.FileSystem, dir string) (name string, content []byte, err error) {
	if name = kustomizationIn(files, dir); name != "" {
		content, err = files.ReadFile(name)
		return name, content, err
	}
	kustomization := emptyKustomization()
	if kustomization.Resources, err = findManifests(files, dir); err != nil {
		return "", nil, err
	}
	if len(kustomization.Resources) == 0 {
		kustomization.Namespace = "_placeholder" // kustomize refuses an empty one
	}
	content, err = yaml.Marshal(kustomization)
	return path.Join(dir, konfig.DefaultKustomizationFileName()), content, err
}

func emptyKustomization() types.Kustomization {
	return types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
}

// kustomizationIn returns the file of a directory that is its kustomization, or "".
func kustomizationIn(files filesys.FileSystem, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if at := path.Join(dir, name); files.Exists(at) && !files.IsDir(at) {
			return at
		}
	}
	return ""
}

// findManifests returns the manifests below a directory, and the directories with kustomizations, relative to it.
func findManifests(files filesys.FileSystem, dir string) (found []string, err error) {
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	add := func(at string) { found = append(found, "./"+strings.TrimPrefix(strings.TrimPrefix(at, dir), "/")) }
	err = files.Walk(dir, func(at string, info fs.FileInfo, err error) error {
		switch {
		case err != nil || at == dir:
			return err
		case info.IsDir() && kustomizationIn(files, at) != "":
			add(at)
			return filepath.SkipDir
		case info.IsDir() || path.Ext(at) != ".yaml" && path.Ext(at) != ".yml":
			return nil
		}
		content, err := files.ReadFile(at)
		if err != nil {
			return err
		}
		if err := checkManifest(func() error { _, err := factory.SliceFromBytes(content); return err }); err != nil {
			return fmt.Errorf("reading %s as Kubernetes objects: %w", strings.TrimPrefix(at, "/"), err)
		}
		add(at)
		return nil
	})
	return found, err
}

// checkManifest turns a panic into an error: kustomize has some for odd YAML.
func checkManifest(read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize gave up: %v", r)
		}
	}()
	return read()
}

// Configure adds the settings of a Kustomization to the kustomization of its directory. created reports whether that is
// no file of the source.
func Configure(files filesys.FileSystem, dir string, content []byte, created bool, spec *kustomizev1.KustomizationSpec) ([]byte, error) {
	kustomization := emptyKustomization()
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		return nil, err
	}
	if !created && len(kustomization.Resources) == 0 {
		kustomization.BuildMetadata = []string{types.OriginAnnotations} // kustomize refuses an empty one
	}
	setIfGiven(&kustomization.Namespace, spec.TargetNamespace)
	setIfGiven(&kustomization.NamePrefix, spec.NamePrefix)
	setIfGiven(&kustomization.NameSuffix, spec.NameSuffix)
	for _, patch := range spec.Patches {
		kustomization.Patches = append(kustomization.Patches, types.Patch{Patch: patch.Patch, Target: selectorOf(patch.Target)})
	}
	for i, component := range spec.Components {
		if !isLocal(component) {
			return nil, fmt.Errorf("spec.components[%d]: %s must be a relative path in the source", i, component)
		}
		if spec.IgnoreMissingComponents && !files.Exists(path.Join(dir, component)) {
			continue
		}
		kustomization.Components = append(kustomization.Components, component)
	}
	for _, image := range spec.Images {
		kustomization.Images = withImage(kustomization.Images, image)
	}
	if len(spec.BuildMetadata) > 0 {
		kustomization.BuildMetadata = nil
		for _, option := range spec.BuildMetadata {
			kustomization.BuildMetadata = append(kustomization.BuildMetadata, string(option))
		}
	}
	return yaml.Marshal(kustomization)
}

func setIfGiven(field *string, value string) {
	if value != "" {
		*field = value
	}
}

func selectorOf(selector *apis.Selector) *types.Selector {
	if selector == nil {
		return nil
	}
	out := &types.Selector{LabelSelector: selector.LabelSelector, AnnotationSelector: selector.AnnotationSelector}
	out.Group, out.Version, out.Kind = selector.Group, selector.Version, selector.Kind
	out.Name, out.Namespace = selector.Name, selector.Namespace
	return out
}

// withImage adds an image. An entry of the same name keeps what the new one does not set; a tag and a digest replace
// each other.
func withImage(images []types.Image, image apis.Image) []types.Image {
	i := slices.IndexFunc(images, func(one types.Image) bool { return one.Name == image.Name })
	if i < 0 {
		return append(images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	setIfGiven(&images[i].NewName, image.NewName)
	if image.NewTag != "" || image.Digest != "" {
		images[i].NewTag, images[i].Digest = image.NewTag, image.Digest
	}
	return images
}

// remotePrefixes are those by which kustomize knows the URL of a repository.
var remotePrefixes = []string{"git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/"}

func isLocal(component string) bool {
	lower := strings.ToLower(component)
	isRemote := func(prefix string) bool { return len(lower) > len(prefix) && strings.HasPrefix(lower, prefix) }
	return !slices.ContainsFunc(remotePrefixes, isRemote) && !path.IsAbs(strings.TrimPrefix(lower, "file://"))
}
