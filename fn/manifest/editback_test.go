// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// TestEditAndBack makes a change and takes it back: the text is what it was.
func TestEditAndBack(t *testing.T) {
	tests := map[string]struct{ text, changed string }{
		"a handler in the middle of a probe": {
			text:    "probe:\n  initialDelaySeconds: 5\n  tcpSocket: # the port\n    port: redis\n  timeoutSeconds: 5\n",
			changed: `{"probe": {"initialDelaySeconds": 5, "httpGet": {"port": 15020, "path": "/app"}, "timeoutSeconds": 5}}`,
		},
		"a handler alone": {
			text:    "probe:\n  grpc:\n    service: own\n    port: 9000\n",
			changed: `{"probe": {"httpGet": {"path": "/app", "port": 15020}}}`,
		},
		"a handler in flow style": {
			text:    "probe:\n  grpc: {port: 1}\n  periodSeconds: 3\n",
			changed: `{"probe": {"httpGet": {"path": "/app", "port": 15020}, "periodSeconds": 3}}`,
		},
		"a handler in JSON": {
			text:    `{"probe": {"tcpSocket": {"port": 1}, "periodSeconds": 3}}`,
			changed: `{"probe": {"httpGet": {"path": "/app", "port": 15020}, "periodSeconds": 3}}`,
		},
		"a value in flow style that needs quotes": {
			text:    "env: [{name: A, value: b}, {name: B, value: /bin}]\n",
			changed: `{"env": [{"name": "A", "value": "b, c"}, {"name": "B", "value": "-x"}]}`,
		},
		"quotes of values in flow style": {
			text:    "env: {A: 'a', B: \"b\", C: 'c, c', D: \"d, d\", E: \"e, e\"}\n",
			changed: `{"env": {"A": "x", "B": "b, b", "C": "c", "D": "d, e", "E": "e"}}`,
		},
		"a value of JSON": {
			text:    `{"env": {"A": "a", "B": "b, b"}}`,
			changed: `{"env": {"A": "a, a", "B": "b"}}`,
		},
		"a key with nothing below it": {
			text:    "spec:\n  volumes: # none\n  containers: []\n",
			changed: `{"spec": {"volumes": [{"name": "a"}], "containers": []}}`,
		},
		"an empty map below its key": {
			text:    "metadata:\n  annotations:\n    {} # none\n  labels: {}\n",
			changed: `{"metadata": {"annotations": {"a": "b", "c": "d"}, "labels": {"e": "f"}}}`,
		},
		"an empty list below its key": {
			text:    "spec:\n  volumes:\n    []\n",
			changed: `{"spec": {"volumes": [{"name": "a"}]}}`,
		},
		"a quantity": {
			text:    "limits:\n  cpu: 3000m\n  memory: '3'\n",
			changed: `{"limits": {"cpu": "3", "memory": "4"}}`,
		},
		"an alias": {
			text:    "live: &p\n  httpGet: {path: /, port: 80}\nready: *p\nstart: 1\n",
			changed: `{"live": {"httpGet": {"path": "/live", "port": 80}}, "ready": {"httpGet": {"path": "/ready", "port": 80}}, "start": 1}`,
		},
		"an anchor that is named elsewhere": {
			text:    "live: &p\n  path: /\nready:\n  path: /\nstart: *p\n",
			changed: `{"live": {"path": "/"}, "ready": {"path": "/x"}, "start": {"path": "/"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("a.yaml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			before, err := f.Docs[0].Object()
			if err != nil {
				t.Fatal(err)
			}
			changed, err := Decode([]byte(test.changed))
			if err != nil {
				t.Fatal(err)
			}
			there, err := f.Docs[0].With(changed.(map[string]any))
			if err != nil {
				t.Fatal(err)
			}
			back, err := there.With(before)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(back.Raw()); got != test.text {
				t.Errorf("got\n%s\nwant\n%s\nby way of\n%s", got, test.text, there.Raw())
			}
		})
	}
}
