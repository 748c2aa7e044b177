// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pulltest_test

import (
	"context"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

func TestHost(t *testing.T) {
	ctx, h := context.Background(), &pulltest.Host{}
	content := pullrequest.Content{Title: "one", Body: "text", Labels: []string{"prerig"}}
	first, err := h.Create(ctx, "b", "main", content)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.Create(ctx, "b", "main", pullrequest.Content{Title: "two"}); err != nil || again.Number != first.Number || again.Title != "one" {
		t.Errorf("creating a second one gives %+v, %v", again, err)
	}
	written := h.Written()
	if _, err := h.Update(ctx, first.Number, content); err != nil || h.Written() != written {
		t.Errorf("an update to the same wrote %d times, %v", h.Written()-written, err)
	}
	h.ClosedByPerson(first.Number)
	second, err := h.Create(ctx, "b", "main", content)
	if err != nil || second.Number == first.Number {
		t.Fatalf("got %+v, %v", second, err)
	}
	if err := h.Close(ctx, first.Number, "comment"); err != nil || len(h.Comments(first.Number)) != 0 {
		t.Errorf("one that is closed got %v, %v", h.Comments(first.Number), err)
	}
	h.MergedByPerson(second.Number, "c1")
	if found, err := h.Find(ctx, "b", "main"); err != nil || found.State != pullrequest.StateMerged || found.MergeCommit != "c1" {
		t.Errorf("found %+v, %v", found, err)
	}
	h.After = func(string) error { return pulltest.Failure(503, "lost") }
	if _, err := h.Create(ctx, "c", "main", content); err == nil {
		t.Error("the answer was not lost")
	} else if _, again := pullrequest.Retry(err); !again {
		t.Error("a lost answer is not temporary")
	}
	if len(h.Requests()) != 3 {
		t.Errorf("%d are there", len(h.Requests()))
	}
}
