// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"
	"sigs.k8s.io/yaml"
)

// FunctionName is the name of Prerig's own function: of its executable, and the last part of its image.
const FunctionName = "prerig-fn"

// ownFunctions are the further names of Prerig's own function: of executables and images.
type ownFunctions []string

// checkAnnotation accepts the function that an object's annotations name if it is Prerig's own.
func (own ownFunctions) checkAnnotation(annotations map[string]any) error {
	text, _ := annotations[runtimeutil.FunctionAnnotationKey].(string)
	var spec runtimeutil.FunctionSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		return fmt.Errorf("reading the annotation %s: %w", runtimeutil.FunctionAnnotationKey, err)
	}
	switch {
	case spec.Exec.Path != "" && spec.Container.Image != "":
		return errors.New("the function is given both as exec and as container")
	case spec.Exec.Path != "":
		if len(spec.Exec.Args) > 0 {
			return fmt.Errorf("the function %s is given arguments, but takes none", spec.Exec.Path)
		}
		return own.checkExec(spec.Exec.Path)
	case spec.Container.Image != "":
		return own.checkImage(spec.Container.Image)
	}
	return errors.New("the annotation names no function")
}

func (own ownFunctions) checkExec(name string) error {
	if base := path.Base(name); base == FunctionName || slices.Contains(own, base) {
		return nil
	}
	return foreignFunctionError("executable " + name)
}

func (own ownFunctions) checkImage(image string) error {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	if path.Base(name) == FunctionName || slices.Contains(own, name) {
		return nil
	}
	return foreignFunctionError("image " + image)
}

func foreignFunctionError(what string) error {
	return fmt.Errorf("the %s is not Prerig's own function (%s): functions and plugins that a source names are never run; "+
		"a further name of Prerig's function can be given under build.functions", what, FunctionName)
}
