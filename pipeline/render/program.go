// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Program is the name of the renderer. It is a program of its own, in the directory of the one that starts it, and the only one that
// links kustomize, Helm and the code of the API server.
const Program = "prerig-render"

// builtWith is the identity of the Program that was built together with this one, which the linker sets; "" where none was.
var builtWith string

// ErrNoRenderer is the cause of the error where the renderer is missing, or is one of another build.
var ErrNoRenderer = errors.New("finding the renderer")

// findRenderer returns the path of the renderer next to the program self, or next to the target of self if it is a
// link. built is the identity that the renderer must have, or "" for any: another build might render a different
// result. The error lists the files that were searched.
func findRenderer(self, built string) (string, error) {
	name := Program
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	places := []string{filepath.Join(filepath.Dir(self), name)}
	if target, err := filepath.EvalSymlinks(self); err == nil {
		places = append(places, filepath.Join(filepath.Dir(target), name))
	}
	places = slices.Compact(places)
	for _, place := range places {
		_, err := os.Stat(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoRenderer, err)
		}
		if built == "" {
			return place, nil
		}
		id, err := identifyRendererBinary(place)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoRenderer, err)
		}
		if id != built {
			return "", fmt.Errorf("%w: %s is of another build than %s; install both from the same release", ErrNoRenderer, place, self)
		}
		return place, nil
	}
	return "", fmt.Errorf("%w: the program %s is missing; it is part of Prerig and belongs beside %s, but there is no %s",
		ErrNoRenderer, name, self, strings.Join(places, " and no "))
}

// defaultCommand starts the renderer that belongs to this program.
func defaultCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRenderer, err)
	}
	renderer, err := findRenderer(self, builtWith)
	return []string{renderer}, err
}
