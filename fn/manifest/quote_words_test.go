// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// Longer texts are not looked up, so that a longer word would be written without quotes.
func TestNoWordIsLongerThanLooked(t *testing.T) {
	for word := range words {
		if len(word) > longestWord {
			t.Errorf("%s has %d bytes, and only up to %d are looked up", word, len(word), longestWord)
		}
		if word != "" && !isAmbiguous(word) {
			t.Errorf("%s is not taken for a word", word)
		}
	}
}
