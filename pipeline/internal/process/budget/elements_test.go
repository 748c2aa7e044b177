// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

func TestElementsOfListsAreCounted(t *testing.T) {
	for text, want := range map[string]bool{
		``: true, `{}`: true, `[1,2,3,4]`: true, `[1,2,3,4,5]`: false, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`: true,
		`{"a":[{},{},{},{},{}]}`: false, `[[],[],[],[],[]]`: false, `["a,b,c,d,e,f,g"]`: true, `["\",[,,,,,,\\"]`: true,
		`["\\",1,2,3,4,5]`: false, `]]]]],,,,,,`: true, `{"a":[1,2],"b":[3,4]}`: true, `{"a":[1,2,3],"b":[4,5]}`: false,
		`["` + strings.Repeat("[,", 1000): true, strings.Repeat("[", 1000): false,
	} {
		if err := budget.CheckElements([]byte(text), 4); (err == nil) != want {
			t.Errorf("%.60s: got %v", text, err)
		}
		inParts, failed := budget.Elements{Most: 4}, false
		for i := range len(text) {
			failed = inParts.Add([]byte(text[i:i+1])) != nil || failed
		}
		if failed == want {
			t.Errorf("%.60s: one byte after the other it is different", text)
		}
	}
	if err := budget.CheckElements([]byte(strings.Repeat(`{"a":`, 1<<20)), 4); err == nil {
		t.Error("a text of a million levels was accepted")
	}
}
