// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
)

// printPods prints the pods in their order.
func (a *admitRun) printPods(admitted *render.Admitted) error {
	if a.output == "json" {
		pods, err := wholePods(admitted)
		if err != nil {
			return err
		}
		return writeJSON(a.streams.Out, pods)
	}
	shapes, err := cutShapes(admitted, func(p render.AdmittedPod) (string, error) {
		return escapeControlCharacters(a.podText(p)), nil // values have none
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(a.streams.Out, 64<<10)
	for i, p := range admitted.Pods {
		if i > 0 {
			separator := "---\n"
			if a.printsLines(p) {
				separator = "\n"
			}
			if _, err := out.WriteString(separator); err != nil {
				return err
			}
		}
		text := ""
		if p.Shape > 0 {
			text = shapes[p.Shape-1].Text(p.Values)
		} else {
			text = escapeControlCharacters(a.podText(p))
		}
		if _, err := out.WriteString(text); err != nil {
			return err
		}
	}
	return out.Flush()
}

// podText returns what is printed of a pod.
func (a *admitRun) podText(p render.AdmittedPod) string {
	var b bytes.Buffer
	a.printPod(&b, p)
	return b.String()
}

// cutShapes returns the text of each shape with gaps for the values.
func cutShapes(admitted *render.Admitted, textOf func(render.AdmittedPod) (string, error)) ([]*manifest.Mould, error) {
	var out []*manifest.Mould
	for _, shape := range admitted.Shapes {
		text, err := textOf(shape.Pod)
		if err != nil {
			return nil, err
		}
		var values []string
		var numbers []int
		for i, v := range shape.Values {
			if v != "" {
				values, numbers = append(values, v), append(numbers, i)
			}
		}
		out = append(out, manifest.CutMould(text, values, numbers))
	}
	return out, nil
}

// wholePods returns all pods with their fields.
func wholePods(admitted *render.Admitted) ([]render.AdmittedPod, error) {
	shapes, err := cutShapes(admitted, func(p render.AdmittedPod) (string, error) {
		text, err := json.Marshal(p)
		return string(text), err
	})
	if err != nil {
		return nil, err
	}
	out := make([]render.AdmittedPod, len(admitted.Pods))
	for i, p := range admitted.Pods {
		out[i] = p
		if p.Shape == 0 {
			continue
		}
		out[i] = render.AdmittedPod{}
		if err := json.Unmarshal([]byte(shapes[p.Shape-1].Text(p.Values)), &out[i]); err != nil {
			return nil, fmt.Errorf("reading a pod of a shape: %w", err)
		}
		out[i].Shape = p.Shape
	}
	return out, nil
}
