// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestPacketThatIsCutOff reads a list whose last packet says that it is longer than what comes.
func TestPacketThatIsCutOff(t *testing.T) {
	const begin = "001e# service=git-upload-pack\n0000"
	for _, rest := range []string{"fff0", "fff0aaa", "00", "0032abc"} {
		for _, service := range []string{"git-upload-pack", ""} {
			if _, err := readAdvertised(t.Context(), budget.Memory(t.Context(), "test"), strings.NewReader(begin+rest), service); !errors.Is(err, io.ErrUnexpectedEOF) && service != "" {
				t.Errorf("%q: got %v", rest, err)
			}
		}
	}
}

// FuzzAdvertised reads whatever a server may send, in pieces: what is taken for a list is a part of it, from its beginning.
func FuzzAdvertised(f *testing.F) {
	f.Add("001e# service=git-upload-pack\n0000fff0aa", "git-upload-pack")
	f.Add("001e# service=git-upload-pack\n00000032ERR no\n", "")
	f.Add("0000", "")
	f.Fuzz(func(t *testing.T, text, service string) {
		got, err := readAdvertised(t.Context(), budget.Memory(t.Context(), "test"), iotest.OneByteReader(strings.NewReader(text)), service)
		if err == nil && !strings.HasPrefix(text, string(got)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
