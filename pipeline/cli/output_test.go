// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// fullDisk takes nothing, as /dev/full.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// commandToFullDisk runs a command line whose standard output takes nothing.
func commandToFullDisk(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	var said bytes.Buffer
	streams := Streams{In: strings.NewReader(""), Out: fullDisk{}, Err: &said}
	code = Main(t.Context(), args, streams, "v0.0.0-test")
	return code, said.String()
}

// A diff that nobody gets to see is not one without differences, and nothing is changed unseen.
func TestDiffThatCannotBeWrittenIsAnError(t *testing.T) {
	original := arrange(t)
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	_, image, _ := strings.Cut(original, "image: ")
	image, _, _ = strings.Cut(image, "\n")
	writeFiles(t, map[string]string{"imagelock.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: ImageLock\nmetadata: {name: lock}\nspec:\n  images:\n  - image: " + image + "\n    digest: " + digest + "\n"})
	for _, args := range [][]string{
		{"inject", "-p", "tiny.yaml", "--diff"}, {"inject", "-p", "tiny.yaml", "--check", "--diff"}, {"inject", "-p", "tiny.yaml", "--diff", "-i"},
		{"images", "apply", "--diff"}, {"images", "apply", "--diff", "-i"},
	} {
		code, stderr := commandToFullDisk(t, append(args, "web.yaml")...)
		if code != ExitError || !strings.Contains(stderr, "error: writing the diff: no space left on device\n") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		if got := readFile(t, "web.yaml"); got != original {
			t.Errorf("%v changed the file:\n%s", args, got)
		}
	}
}

func TestHelpThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, line := range []string{"help", "--help", "help lint", "lint --help", "images --help", "completion bash", "completion --help", "--version", "version"} {
		if code, stderr := commandToFullDisk(t, strings.Fields(line)...); code != ExitError || !strings.Contains(stderr, "no space left") {
			t.Errorf("%s: exit code %d\n%s", line, code, stderr)
		}
	}
}
