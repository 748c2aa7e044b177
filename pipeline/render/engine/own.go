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

// isOwnFunction reports whether the function that an object's annotations name is Prerig's own.
func (w *renderWorker) isOwnFunction(annotations map[string]any) error {
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
		return w.checkOwnExec(spec.Exec.Path)
	case spec.Container.Image != "":
		return w.checkOwnImage(spec.Container.Image)
	}
	return errors.New("the annotation names no function")
}

func (w *renderWorker) checkOwnExec(name string) error {
	if base := path.Base(name); base == FunctionName || slices.Contains(w.request.Functions, base) {
		return nil
	}
	return foreignFunctionError("executable " + name)
}

func (w *renderWorker) checkOwnImage(image string) error {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	if path.Base(name) == FunctionName || slices.Contains(w.request.Functions, name) {
		return nil
	}
	return foreignFunctionError("image " + image)
}

func foreignFunctionError(what string) error {
	return fmt.Errorf("the %s is not Prerig's own function (%s): functions and plugins that a source names are never run; "+
		"a further name of Prerig's function can be given under build.functions", what, FunctionName)
}
