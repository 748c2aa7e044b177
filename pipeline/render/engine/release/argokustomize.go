// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/kv"
	"sigs.k8s.io/kustomize/api/pkg/loader"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kustomize/v5/commands/edit/add"
	"sigs.k8s.io/kustomize/kustomize/v5/commands/edit/set"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// appKustomize are the options of a kustomization.
type appKustomize struct {
	NamePrefix                string            `json:"namePrefix"`
	NameSuffix                string            `json:"nameSuffix"`
	Images                    []string          `json:"images"`
	CommonLabels              map[string]string `json:"commonLabels"`
	Version                   string            `json:"version"`
	CommonAnnotations         map[string]string `json:"commonAnnotations"`
	ForceCommonLabels         bool              `json:"forceCommonLabels"`
	ForceCommonAnnotations    bool              `json:"forceCommonAnnotations"`
	Namespace                 string            `json:"namespace"`
	CommonAnnotationsEnvsubst bool              `json:"commonAnnotationsEnvsubst"`
	Replicas                  []struct {
		Name  string             `json:"name"`
		Count intstr.IntOrString `json:"count"`
	} `json:"replicas"`
	Patches                 []types.Patch `json:"patches"`
	Components              []string      `json:"components"`
	IgnoreMissingComponents bool          `json:"ignoreMissingComponents"`
	LabelWithoutSelector    bool          `json:"labelWithoutSelector"`
	LabelIncludeTemplates   bool          `json:"labelIncludeTemplates"`
}

// renderKustomization builds a kustomization with the options of the source, which Argo CD writes into it first.
func (r *appRender) renderKustomization(ctx context.Context, out *Rendered) error {
	files := r.set.in.Files
	if options := r.source.Kustomize; options != nil {
		if options.Version != "" {
			out.Results = append(out.Results, Finding(result.Warning, r.object, r.fieldOf("kustomize.version"), "has no effect: Prerig builds with the kustomize that it has"))
		}
		edited, err := r.editKustomization(options)
		if err != nil {
			return err
		}
		files = edited
	}
	texts, err := r.set.in.BuildKustomize(ctx, files, r.chart.path)
	if err != nil {
		return errorAboutField(r.object, r.at+".path", "building %s: %v", r.chart.path, err)
	}
	for _, text := range texts {
		out.Manifests = append(out.Manifests, Manifest{Template: r.chart.path, YAML: text})
	}
	return nil
}

// editKustomization returns the tree with the options written into the kustomization.
func (r *appRender) editKustomization(options *appKustomize) (tree.Reader, error) {
	files := r.set.in.Files
	names := slices.DeleteFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool { return !r.hasFile(name) })
	if len(names) != 1 {
		return nil, errorAboutField(r.object, r.at+".path", "%s must have one kustomization, found %d", r.source.Path, len(names))
	}
	info, err := files.Lookup(path.Join(r.chart.path, names[0]))
	if err != nil {
		return nil, err
	}
	content, err := files.Read(info.Path)
	if err != nil {
		return nil, err
	}
	commands, err := r.editCommands(options)
	if err != nil {
		return nil, err
	}
	if content, err = runEdits(names[0], content, commands); err != nil {
		return nil, errorAboutField(r.object, r.at+".kustomize", "cannot be written into %s: %v", info.Path, err)
	}
	if content, err = r.addPatches(content, options); err != nil {
		return nil, err
	}
	return tree.Replaced{Reader: files, Path: info.Path, Content: content}, nil
}

// editCommands returns the commands of kustomize edit that Argo CD runs (util/kustomize/kustomize.go).
func (r *appRender) editCommands(options *appKustomize) (commands [][]string, err error) {
	single := func(field, value string) {
		if value != "" {
			commands = append(commands, []string{"set", field, "--", value})
		}
	}
	several := func(command []string, flags map[string]bool, values []string) {
		if len(values) == 0 {
			return
		}
		for _, flag := range slices.Sorted(maps.Keys(flags)) {
			if flags[flag] {
				command = append(command, flag)
			}
		}
		commands = append(commands, append(command, values...))
	}
	single("nameprefix", options.NamePrefix)
	single("namesuffix", options.NameSuffix)
	var images, replicas []string
	for i, image := range options.Images {
		substituted, err := r.substituteBuildVariables(r.fieldOf("kustomize.images[%d]", i), image)
		if err != nil {
			return nil, err
		}
		images = append(images, substituted)
	}
	for _, one := range options.Replicas {
		replicas = append(replicas, one.Name+"="+one.Count.String())
	}
	labels, err := r.metadataArguments("commonLabels", options.CommonLabels, true)
	if err != nil {
		return nil, err
	}
	annotations, err := r.metadataArguments("commonAnnotations", options.CommonAnnotations, options.CommonAnnotationsEnvsubst)
	if err != nil {
		return nil, err
	}
	several([]string{"set", "image"}, nil, images)
	several([]string{"set", "replicas"}, nil, replicas)
	several([]string{"add", "label"}, map[string]bool{
		"--force": options.ForceCommonLabels, "--without-selector": options.LabelWithoutSelector, "--include-templates": options.LabelIncludeTemplates,
	}, labels)
	several([]string{"add", "annotation"}, map[string]bool{"--force": options.ForceCommonAnnotations}, annotations)
	single("namespace", options.Namespace)
	return commands, nil
}

// metadataArguments returns labels or annotations as arguments.
func (r *appRender) metadataArguments(field string, of map[string]string, substitute bool) (out []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		value := of[key]
		if substitute {
			if value, err = r.substituteBuildVariables(r.fieldOf("kustomize.%s.%s", field, key), value); err != nil {
				return nil, err
			}
		}
		out = append(out, key+":"+value)
	}
	return out, nil
}

// runEdits runs commands of kustomize edit on a kustomization.
func runEdits(name string, content []byte, commands [][]string) ([]byte, error) {
	memory := filesys.MakeFsInMemory()
	if err := memory.WriteFile(name, content); err != nil {
		return nil, err
	}
	dependencies := provider.NewDefaultDepProvider()
	validator, factory := dependencies.GetFieldValidator(), dependencies.GetResourceFactory()
	values := kv.NewLoader(loader.NewFileLoaderAtCwd(memory), validator)
	for _, arguments := range commands {
		edit := &cobra.Command{Use: "edit", SilenceErrors: true, SilenceUsage: true}
		edit.AddCommand(set.NewCmdSet(memory, values, validator, factory), add.NewCmdAdd(memory, values, factory))
		edit.SetArgs(arguments)
		edit.SetOut(io.Discard)
		edit.SetErr(io.Discard)
		if err := edit.Execute(); err != nil {
			return nil, err
		}
	}
	return memory.ReadFile(name)
}

// addPatches adds the patches and components to a kustomization.
func (r *appRender) addPatches(content []byte, options *appKustomize) ([]byte, error) {
	if len(options.Patches)+len(options.Components) == 0 {
		return content, nil
	}
	kustomization := map[string]any{}
	if err := readYAML(content, &kustomization); err != nil {
		return nil, errorAboutField(r.object, r.at+".path", "reading the kustomization of %s: %v", r.source.Path, err)
	}
	listOf := func(key string) ([]any, error) {
		list, ok := kustomization[key].([]any)
		if !ok && kustomization[key] != nil {
			return nil, errorAboutField(r.object, r.at+".path", "%s in the kustomization of %s must be a list", key, r.source.Path)
		}
		return list, nil
	}
	patches, err := listOf("patches")
	if err != nil {
		return nil, err
	}
	for _, one := range options.Patches {
		patches = append(patches, one)
	}
	components, err := listOf("components")
	if err != nil {
		return nil, err
	}
	for i, one := range options.Components {
		exists, err := r.hasComponent(one)
		switch {
		case err != nil || !exists && !options.IgnoreMissingComponents:
			return nil, errorAboutField(r.object, r.fieldOf("kustomize.components[%d]", i), "%s is not in the tree; ignoreMissingComponents leaves it out", one)
		case exists && !slices.Contains(components, any(one)):
			components = append(components, one)
		}
	}
	kustomization["patches"], kustomization["components"] = patches, components
	return yaml.Marshal(kustomization)
}

// hasComponent reports whether the tree has a component, by its path from the kustomization.
func (r *appRender) hasComponent(name string) (bool, error) {
	at := path.Join(r.chart.path, name)
	if path.IsAbs(name) || at == ".." || len(at) > 2 && at[:3] == "../" {
		return false, fmt.Errorf("%s leads out of the tree", name)
	}
	_, err := r.set.in.Files.Lookup(at)
	return err == nil, nil
}
