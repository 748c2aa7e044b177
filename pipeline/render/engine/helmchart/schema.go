// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// checkSchemas rejects schemas that need another document, in all charts. Helm would fetch it, or read it from the
// machine's own files: its validation has loaders for both that cannot be replaced
// (pkg/chart/common/util/jsonschema.go of Helm 4.3). skip is the field that disables the schemas, if one exists.
func checkSchemas(c *chart.Chart, skip string) error {
	outside, err := compileSchema(c.Schema)
	switch {
	case outside != "" && skip != "":
		return fmt.Errorf("values.schema.json of the chart %s %s; set %s to do without", c.ChartFullPath(), outside, skip)
	case outside != "":
		return fmt.Errorf("values.schema.json of the chart %s %s", c.ChartFullPath(), outside)
	case err != nil:
		return fmt.Errorf("reading values.schema.json of the chart %s: %w", c.ChartFullPath(), err)
	}
	for _, dependency := range c.Dependencies() {
		if err := checkSchemas(dependency, skip); err != nil {
			return err
		}
	}
	return nil
}

// compileSchema compiles a schema as Helm does, without access to other documents. outside is the document that it
// refers to, or "" if it refers to none. A text that is not JSON is left to Helm, which loads no document for it.
func compileSchema(text []byte) (outside string, err error) {
	const name = "file:///values.schema.json" // as Helm calls it: relative references are resolved against it
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return "", nil //nolint:nilerr // Helm reports it
	}
	defer func() {
		if r := recover(); r != nil { // Helm is prepared for it, too
			err = fmt.Errorf("compiling it: %v", r)
		}
	}()
	loader, compiler := &noSchemas{}, jsonschema.NewCompiler()
	compiler.UseLoader(loader)
	if err := compiler.AddResource(name, schema); err != nil {
		return "", err
	}
	_, err = compiler.Compile(name)
	return loader.asked, err
}

// noSchemas loads no schema, and notes which is asked for.
type noSchemas struct{ asked string }

// Load implements jsonschema.URLLoader. To Helm, everything fits what a URN names.
func (l *noSchemas) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	l.asked = "refers to " + url + ", and a render uses no network"
	if name, isFile := strings.CutPrefix(url, "file:"); isFile {
		l.asked = "refers to the file " + path.Clean(name) + ", and a render reads none of the machine"
	}
	return nil, errors.New("it is another document")
}
