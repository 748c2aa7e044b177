// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	_ "unsafe" // for go:linkname

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render"
)

// How a function that a kustomization names is run without running a plugin.
//
// kustomize applies the transformers of a kustomization in the middle of its work: after resources, generators,
// components and builtin transformers of this kustomization, before everything of the kustomizations that use it, and
// before hashes and name references are settled at the very end. Objects carry state at that point (former names, what
// needs a hash) that is in no output. So rendering layers one after the other cannot have the same result: the function
// must run inside of kustomize, at that point, on kustomize's own objects.
//
// kustomize has such a place for its builtin transformers, also when plugins are disabled: an object of apiVersion
// "builtin" is looked up in a table by its kind. The table belongs to an internal package, so it is reached by its linker
// symbol. In the tree that kustomize sees, an object that names a function gets apiVersion "builtin" (its own one is
// moved to an annotation), and the table's entry for unknown kinds makes our transformer. All other plugins stay
// disabled by kustomize itself. A renderer has its own process and puts it in for each build, so this does not affect
// other callers.
//
//go:linkname builtinTransformers sigs.k8s.io/kustomize/api/internal/plugins/builtinhelpers.TransformerFactories
var builtinTransformers map[int]func() resmap.TransformerPlugin

// unknownKind is the table's key for kinds that are not kustomize's own (builtinhelpers.Unknown).
const unknownKind = 0

// Annotations that keep the identity of an object that names a function.
const (
	annotationAPIVersion = "internal.prerig.dev/api-version"
	virtualPrefix        = ".prerig-render-"
)

// installTransformer puts our transformer into kustomize's table.
func installTransformer(make func() resmap.TransformerPlugin) error {
	if len(builtinTransformers) == 0 {
		return errors.New("this version of kustomize keeps its builtin transformers elsewhere; Prerig must be adapted to it")
	}
	builtinTransformers[unknownKind] = make
	return nil
}

// rewriteTransformer returns an entry of transformers in the form that kustomize runs in place, or the entry as it is.
func (k *checkedTree) rewriteTransformer(dir, entry string) (string, error) {
	if docs := functionDocuments([]byte(entry)); docs != nil {
		text, err := markFunctionDocuments([]byte(entry))
		return string(text), err
	}
	target := path.Join(dir, entry)
	info, err := k.Reader.Lookup(target)
	if err != nil {
		return entry, nil // inline, or kustomize will report that it does not exist
	}
	if info.Dir {
		return k.wrapDirectory(dir, entry), nil
	}
	content, err := k.Reader.Read(target)
	if err != nil || functionDocuments(content) == nil {
		return entry, err
	}
	text, err := markFunctionDocuments(content)
	if err != nil {
		return "", fmt.Errorf("%s: %w", entry, err)
	}
	name := path.Join(path.Dir(entry), k.virtualName(path.Base(entry)))
	k.virtual[render.CleanPath(path.Join(dir, name))] = text
	k.names[path.Base(name)] = path.Base(entry)
	return name, nil
}

func (k *checkedTree) virtualName(of string) string {
	k.count++
	return fmt.Sprintf("%s%d-%s", virtualPrefix, k.count, of)
}

// wrapDirectory puts a kustomization around a directory of transformers, which marks those that name a function after all patches
// of the directory have been applied to them.
func (k *checkedTree) wrapDirectory(dir, entry string) string {
	name := k.virtualName("transformers")
	text := fmt.Sprintf(`resources: [%q]
patches:
- target: {annotationSelector: %s}
  patch: |
    - {op: copy, from: /apiVersion, path: /metadata/annotations/%s}
    - {op: replace, path: /apiVersion, value: %s}
`, path.Join("..", entry), runtimeutil.FunctionAnnotationKey, strings.ReplaceAll(annotationAPIVersion, "/", "~1"), konfig.BuiltinPluginApiVersion)
	k.virtual[render.CleanPath(path.Join(dir, name, konfig.DefaultKustomizationFileName()))] = []byte(text)
	k.names[name] = entry
	return name
}

// functionDocuments returns the documents of a stream that name a function, or nil if it has none or is not YAML.
func functionDocuments(content []byte) []*yaml.Node {
	docs, err := parseDocuments(content)
	if err != nil {
		return nil
	}
	var found []*yaml.Node
	for _, doc := range docs {
		if annotationValue(doc, runtimeutil.FunctionAnnotationKey) != nil {
			found = append(found, doc)
		}
	}
	return found
}

// markFunctionDocuments marks the documents of a stream that name a function.
func markFunctionDocuments(content []byte) ([]byte, error) {
	docs, err := parseDocuments(content)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	for i, doc := range docs {
		if i > 0 {
			out.WriteString("---\n")
		}
		if annotationValue(doc, runtimeutil.FunctionAnnotationKey) != nil {
			if err := markFunction(doc); err != nil {
				return nil, err
			}
		}
		text, err := yaml.Marshal(doc)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	return []byte(out.String()), nil
}

func markFunction(doc *yaml.Node) error {
	apiVersion, kind := memberValue(doc, "apiVersion"), memberValue(doc, "kind")
	if apiVersion == nil || kind == nil {
		return errors.New("an object that names a function has no apiVersion or no kind")
	}
	if slices.Contains(builtinKinds(), kind.Value) {
		return fmt.Errorf("an object of kind %s, which is kustomize's own, names a function", kind.Value)
	}
	annotations := memberValue(memberValue(doc, "metadata"), "annotations")
	annotations.Content = append(annotations.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: annotationAPIVersion},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: apiVersion.Value, Style: yaml.DoubleQuotedStyle})
	apiVersion.Value, apiVersion.Tag = konfig.BuiltinPluginApiVersion, "!!str"
	return nil
}

// builtinKinds are kinds that kustomize makes itself from apiVersion builtin.
func builtinKinds() []string {
	return []string{
		"AnnotationsTransformer", "ConfigMapGenerator", "IAMPolicyGenerator", "HashTransformer", "ImageTagTransformer", "LabelTransformer",
		"NamespaceTransformer", "PatchJson6902Transformer", "PatchStrategicMergeTransformer", "PatchTransformer", "PrefixSuffixTransformer",
		"PrefixTransformer", "SuffixTransformer", "ReplicaCountTransformer", "SecretGenerator", "ValueAddTransformer",
		"HelmChartInflationGenerator", "ReplacementTransformer",
	}
}

func parseDocuments(content []byte) ([]*yaml.Node, error) {
	var docs []*yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				return docs, nil
			}
			return nil, err
		}
		if len(doc.Content) > 0 && doc.Content[0].Kind == yaml.MappingNode {
			docs = append(docs, doc.Content[0])
		} else if len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" {
			return nil, errors.New("a document is not an object")
		}
	}
}

func memberValue(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func annotationValue(doc *yaml.Node, key string) *yaml.Node {
	return memberValue(memberValue(memberValue(doc, "metadata"), "annotations"), key)
}

// functionTransformer is a transformer of kustomize that is Prerig's own function.
type functionTransformer struct {
	ctx      context.Context
	build    *kustomizeBuild
	helpers  *resmap.PluginHelpers
	policies *compiledPolicies
	layer    string
}

// Config implements resmap.Configurable.
func (f *functionTransformer) Config(helpers *resmap.PluginHelpers, config []byte) error {
	value, err := manifest.Decode(config)
	if err != nil {
		return err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("it is not an object")
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	apiVersion, ok := annotations[annotationAPIVersion].(string)
	if !ok {
		return fmt.Errorf("kustomize has no builtin transformer of kind %v", object["kind"])
	}
	if err := ownFunctions(f.build.request.Functions).checkAnnotation(annotations); err != nil {
		return err
	}
	delete(annotations, annotationAPIVersion)
	object["apiVersion"] = apiVersion
	f.build.marked[fmt.Sprintf("%v %v", object["kind"], metadata["name"])] = apiVersion
	f.helpers, f.layer = helpers, string(f.build.layers([]byte(strings.TrimPrefix(helpers.Loader().Root(), "/"))))
	f.policies, err = f.build.injection.compiled.policiesForText("function "+string(config), func() ([]*v1alpha1.InjectionPolicy, error) {
		policy, err := v1alpha1.FromObject(object)
		return []*v1alpha1.InjectionPolicy{policy}, err
	})
	return err
}

// Transform implements resmap.Transformer: what changes is read back as kustomize reads the output of a function.
func (f *functionTransformer) Transform(objects resmap.ResMap) error {
	injector, err := f.policies.compiledInjector()
	if err != nil {
		return err
	}
	items := make([]fn.Item, 0, objects.Size())
	for i, object := range objects.Resources() {
		text, err := object.AsYAML()
		if err != nil {
			return err
		}
		file, err := manifest.Parse("", text)
		if err != nil || len(file.Docs) != 1 {
			return fmt.Errorf("reading %s: %d documents, %w", object.CurId(), len(file.Docs), err)
		}
		items = append(items, fn.Item{Doc: file.Docs[0], Index: i})
	}
	report, err := f.build.injection.run(f.ctx, injector, items, f.layer)
	if err != nil {
		return err
	}
	factory := f.helpers.ResmapFactory().RF()
	var gone []resid.ResId // objects that sidecars added to an earlier output, and do not add any more
	for i, item := range report.Items {
		if item.Doc == items[i].Doc {
			continue
		}
		if item.Doc.Empty() {
			gone = append(gone, objects.GetByIndex(i).CurId())
			continue
		}
		changed, err := factory.FromBytes(item.Doc.Raw())
		if err != nil {
			return err
		}
		objects.GetByIndex(i).ResetRNode(changed)
	}
	for _, id := range gone {
		if err := objects.Remove(id); err != nil {
			return err
		}
	}
	for _, doc := range report.Added {
		added, err := factory.FromBytes(doc.Raw())
		if err != nil {
			return err
		}
		if err := objects.Append(added); err != nil {
			return err
		}
	}
	return nil
}

// transformations is where kustomize notes which transformers changed an object, when a kustomization asks for it
// (buildMetadata: [transformerAnnotations]).
const transformations = "alpha.config.kubernetes.io/transformations"

var configuredBy = lazyregexp.New(`apiVersion: builtin\n(\s+)kind: (\S+)\n\s+name: (\S+)`)

// unmarkOrigin puts the apiVersion of functions back into the note of what changed an object.
func (b *kustomizeBuild) unmarkOrigin(object *resource.Resource) error {
	annotations := object.GetAnnotations()
	text, ok := annotations[transformations]
	if !ok {
		return nil
	}
	annotations[transformations] = configuredBy.ReplaceAllStringFunc(text, func(match string) string {
		parts := configuredBy.FindStringSubmatch(match)
		if apiVersion, ok := b.marked[parts[2]+" "+parts[3]]; ok {
			return strings.Replace(match, "apiVersion: builtin", "apiVersion: "+apiVersion, 1)
		}
		return match
	})
	return object.SetAnnotations(annotations)
}

func newFunction(ctx context.Context, build *kustomizeBuild) func() resmap.TransformerPlugin {
	return func() resmap.TransformerPlugin { return &functionTransformer{ctx: ctx, build: build} }
}
