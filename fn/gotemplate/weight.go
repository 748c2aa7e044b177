// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

// weight is the size of values that templates can build themselves: texts, and lists and maps of anything. An
// element that a list has twice counts twice, because it is printed twice.
type weight struct{ bytes, elements int }

func sumArgumentWeights(args []any) error {
	var w weight
	for _, arg := range args {
		if err := w.addValueWeight(arg); err != nil {
			return err
		}
	}
	return nil
}

func (w *weight) addValueWeight(v any) error {
	switch v := v.(type) {
	case string:
		w.bytes += len(v)
	case []any:
		for _, e := range v {
			if err := w.addListElement(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			w.bytes += len(k)
			if err := w.addListElement(e); err != nil {
				return err
			}
		}
	case []string:
		for _, e := range v {
			if err := w.addListElement(e); err != nil {
				return err
			}
		}
	}
	if w.bytes > maxMade {
		return errTooLong
	}
	return nil
}

func (w *weight) addListElement(v any) error {
	if w.elements++; w.elements > maxListed {
		return errTooMany
	}
	return w.addValueWeight(v)
}
