// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/prerig/prerig/fn/result"
)

// mergeMaps returns a overlaid with b. Mappings are merged, all other values replaced.
func mergeMaps(a, b map[string]any) map[string]any { return loader.MergeMaps(a, b) }

// maxAliased bounds the number of values that the aliases of a text expand to.
const maxAliased = 1_000_000

// readValues reads values as Helm does.
func readValues(content []byte) (map[string]any, error) {
	if err := checkAliases(content); err != nil {
		return nil, err
	}
	return common.ReadValues(content)
}

// checkAliases rejects a text whose aliases expand to too many values.
func checkAliases(content []byte) error {
	if !bytes.ContainsRune(content, '&') || !bytes.ContainsRune(content, '*') {
		return nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return err
	}
	if countExpandedValues(&doc, map[*yaml.Node]int{}) > maxAliased {
		return fmt.Errorf("excessive aliasing: the aliases stand for more than %d values", maxAliased)
	}
	return nil
}

// countExpandedValues counts the values of a node with its aliases written out.
func countExpandedValues(node *yaml.Node, known map[*yaml.Node]int) int {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if count, ok := known[node]; ok {
		return count
	}
	known[node] = maxAliased + 1
	count := 1
	for _, child := range node.Content {
		if count += countExpandedValues(child, known); count > maxAliased {
			break
		}
	}
	known[node] = count
	return count
}

// setPath sets the value at a path as helm-controller does: as --set, as --set-string where it is in quotes, and as it is where it
// is literal (github.com/fluxcd/pkg/chartutil, ReplacePathValue and ReplacePathLiteralValue).
func setPath(values map[string]any, path, value string, literal bool) error {
	const quotes = `'"`
	switch {
	case literal:
		escaped := strings.NewReplacer(`\`, `\\`, `,`, `\,`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(value)
		return strvals.ParseIntoString(path+"="+escaped, values)
	case value != "" && strings.Contains(quotes, value[:1]) && strings.HasSuffix(value, value[:1]):
		return strvals.ParseIntoString(path+"="+strings.Trim(value, quotes), values)
	}
	return strvals.ParseInto(path+"="+value, values)
}

// defaultKey is where values are in a ConfigMap or Secret.
const defaultKey = "values.yaml"

// readReference returns what a reference to values names; found is false where it may be missing, and is.
func (s *Set) readReference(o *Object, at, namespace string, ref meta.ValuesReference, out *Rendered) (content string, found bool, err error) {
	if ref.Kind != "ConfigMap" && ref.Kind != "Secret" {
		return "", false, errorAboutField(o, at+".kind", "must be ConfigMap or Secret, found %q", ref.Kind)
	}
	object := s.byName[objectKey{"", ref.Kind, namespace, ref.Name}]
	name := ref.Kind + " " + namespace + "/" + ref.Name
	if object == nil {
		if !ref.Optional {
			return "", false, errorAboutField(o, at+".name", "%s is not among the objects; put it into the build, or name its file under spec.build.releases.objects, %s", name, keepHint)
		}
		out.Results = append(out.Results, Finding(result.Warning, o, at+".name",
			fmt.Sprintf("%s is optional and not among the objects, so that its values are left out; a cluster may have it", name)))
		return "", false, nil
	}
	if object.Value["sops"] != nil {
		return "", false, errorAboutField(o, at+".name", "%s is encrypted, and its values cannot be read; have it decrypted in the cluster and %s", name, strings.TrimPrefix(keepHint, "or "))
	}
	key := ref.ValuesKey
	if key == "" {
		key = defaultKey
	}
	content, found, err = DataOf(object, key)
	if err != nil {
		return "", false, errorAboutField(o, at+".name", "%s: %v", name, err)
	}
	if _, message := s.checkVariables(object, "data", content); message != "" {
		return "", false, errorAboutField(o, at+".name", "%s, at %s: %s", name, key, message)
	}
	if !found && !ref.Optional {
		return "", false, errorAboutField(o, at+".valuesKey", "%s has no key %s", name, key)
	}
	if !found {
		out.Results = append(out.Results, Finding(result.Warning, o, at+".valuesKey", fmt.Sprintf("%s has no key %s, and is optional, so that nothing is taken from it", name, key)))
	}
	return content, found, nil
}

// DataKeys returns the keys of a ConfigMap or Secret, sorted.
func DataKeys(object *Object) []string {
	keys := map[string]bool{}
	for _, field := range []string{"data", "stringData"} {
		data, _ := object.Value[field].(map[string]any)
		for key := range data {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// DataOf returns the value at a key of a ConfigMap or Secret.
func DataOf(object *Object, key string) (content string, found bool, err error) {
	data, _ := object.Value["data"].(map[string]any)
	value, ok := data[key].(string)
	if object.Ref().Kind == "ConfigMap" {
		return value, ok, nil
	}
	plain, _ := object.Value["stringData"].(map[string]any)
	if text, ok := plain[key].(string); ok { // the API server writes it over data
		return text, true, nil
	}
	if !ok {
		return "", false, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
	if err != nil {
		return "", false, fmt.Errorf("data.%s is not base64", key)
	}
	return string(decoded), true, nil
}
