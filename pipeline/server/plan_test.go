// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// What others have changed is undone only after a question: one click on the button of a drifted pipeline changes nothing.
func TestDriftIsPutBackAfterAQuestion(t *testing.T) {
	const text = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: shop}\nspec: {source: {dir: {path: /srv}}}\n"
	s := with(t, map[string]string{"web.yaml": text})
	state, revision, err := s.Store.Load(t.Context(), "shop/web")
	if err != nil {
		t.Fatal(err)
	}
	state.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDrifted, Message: "web.yaml was changed by \u202ePat"}}
	if _, err := s.Store.Save(t.Context(), "shop/web", state, revision); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, serveAdmin(t, s, Access{}))
	v.signIn(token)
	asked := v.visit("/pipeline?name=shop/web").press("retry")
	if asked.code != http.StatusOK || !strings.Contains(asked.text, "Undo what others have changed") || strings.Contains(asked.text, "\u202e") {
		t.Errorf("%d: %s", asked.code, asked.text)
	}
	if s.Store.Control("shop/web").Force {
		t.Error("it is put back before anybody was asked")
	}
	if done := asked.confirm(); done.code != http.StatusOK || !s.Store.Control("shop/web").Force {
		t.Errorf("after the answer: %d", done.code)
	}
}
