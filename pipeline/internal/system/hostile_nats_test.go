// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/server"
)

// TestHostileNeighboursAtNATS has another user of the NATS servers write what is none of Prerig's messages to its subjects, and
// then delete its streams. The daemon publishes meanwhile, holds its pipelines when the state is lost, and goes on after that is
// confirmed.
func TestHostileNeighboursAtNATS(t *testing.T) {
	url := startNATS(t)
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL")})
	f.c.NATS.URL, f.c.NATS.AckWait = url, 2*time.Second
	f.c.Listen, f.c.Admin.Listen = free(t), free(t) // those after the daemon has opened all again, too
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:1")
	others, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	js, err := jetstream.New(others)
	if err != nil {
		t.Fatal(err)
	}
	token := base64.RawURLEncoding.EncodeToString
	empty := `{"pipeline":"team/web","event":{"changes":[` + strings.Repeat("{},", 300_000) + `{}]}}`
	for i := range 200 {
		for subject, data := range map[string]string{
			"PRERIG.work." + token([]byte("team/web")):          empty,
			"PRERIG.work." + token([]byte("evil/x")):            `{"pipeline":"team/web","force":true}`,
			"PRERIG.work." + token(fmt.Append(nil, "evil/", i)): fmt.Sprintf(`{"pipeline":"evil/%d"}`, i),
			"PRERIG.event.x":                                         `{"event":{"receiver":"git","id":"forged"}}`,
			"PRERIG.event." + token([]byte("git")):                   "\x00",
			"$KV.PRERIG_STATE." + token(fmt.Append(nil, "evil/", i)): strings.Repeat("x", 1000),
			"$KV.PRERIG_STATE." + token([]byte("pipeline/team/web")): "\x28\xb5\x2f\xfd",
		} {
			if _, err := js.Publish(t.Context(), subject, []byte(data)); err != nil {
				t.Fatal(subject, err)
			}
		}
	}
	f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")}))
	f.shows(file, "image: web:2")
	for _, name := range []string{"KV_PRERIG_STATE", "PRERIG_EVENTS", "PRERIG_WORK", "KV_PRERIG_SEEN", "KV_PRERIG_PAPERS"} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(name, err)
		}
	}
	f.eventually("waiting for the pipeline to be held", func() string {
		_, body := f.ask(f.page, "/api/v1/pipelines?pipeline=team/web")
		if !strings.Contains(body, "prerig daemon resume") {
			return body
		}
		return ""
	})
	overSocket(t, f.c.Socket(), http.MethodPost, "/api/v1/suspend", server.Request{All: true, Held: true}, &server.Answer{})
	f.push(f.repository.Commit("third", map[string]string{"apps/web/web.yaml": deployment("web", "web:3")}))
	f.shows(file, "image: web:3")
}
