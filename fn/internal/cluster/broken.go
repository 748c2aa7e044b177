// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"sigs.k8s.io/yaml"
)

// mistake is one way to break an object of some kinds.
type mistake struct {
	name string
	// at is a path into the object, such as spec.ports.0.name; "{pod}" at its beginning is that of the kind's pod template. An empty path
	// is that of the object.
	at string
	// value is the YAML that is written at the path; "-" removes the field, and a value that begins with "+ " is
	// appended to the list.
	value string
	// kinds are those to which the mistake applies; empty for all that have the pod or the metadata that it is about.
	kinds []string
}

// broken is an object with one mistake.
type broken struct {
	kind, mistake string
	object        map[string]any
}

// drawBroken returns count objects with one mistake each, all kinds of mistakes in turn, made up from a seed.
func drawBroken(seed uint64, count int) ([]broken, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	type way struct {
		kind string
		mistake
	}
	var ways []way
	for _, m := range allMistakes() {
		for _, kind := range kindsOf(m) {
			ways = append(ways, way{kind, m})
		}
	}
	random.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	var out []broken
	for i := range count {
		w := ways[i%len(ways)]
		object, err := drawSound(random, w.kind, i)
		if err != nil {
			return nil, err
		}
		if err := w.applyToObject(object, w.kind); err != nil {
			return nil, fmt.Errorf("making the mistake %q in a %s: %w", w.name, w.kind, err)
		}
		out = append(out, broken{w.kind, w.name, object})
	}
	return out, nil
}

// kindsOf returns the kinds that a mistake can be made in.
func kindsOf(m mistake) []string {
	if len(m.kinds) > 0 {
		return m.kinds
	}
	if !strings.HasPrefix(m.at, "{pod}") {
		return allKinds()
	}
	var out []string
	for _, kind := range allKinds() {
		if _, ok := podPaths[kind]; ok {
			out = append(out, kind)
		}
	}
	return out
}

// podPaths are the paths of the pod templates.
var podPaths = map[string]string{
	"Pod": "", "Deployment": "spec.template.", "StatefulSet": "spec.template.", "DaemonSet": "spec.template.", "ReplicaSet": "spec.template.",
	"Job": "spec.template.", "CronJob": "spec.jobTemplate.spec.template.",
}

// applyToObject makes the mistake.
func (m mistake) applyToObject(object map[string]any, kind string) error {
	at := strings.Replace(m.at, "{pod}.", podPaths[kind], 1)
	var value any
	text, isAppended := strings.CutPrefix(m.value, "+ ")
	if m.value != "-" {
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
	}
	keys := strings.Split(at, ".")
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], "|", ".") // a key with dots has bars in their places
	}
	_, err := changeValueAtPath(object, keys, value, m.value == "-", isAppended)
	return err
}

// changeValueAtPath returns a value in which something is set, removed or appended at a path. Mappings are changed in
// place.
func changeValueAtPath(in any, keys []string, value any, remove, isAppended bool) (any, error) {
	if len(keys) == 0 {
		if !isAppended {
			return value, nil
		}
		list, _ := in.([]any)
		return append(list, value), nil
	}
	key := keys[0]
	switch v := in.(type) {
	case nil:
		return changeValueAtPath(map[string]any{}, keys, value, remove, isAppended)
	case map[string]any:
		if remove && len(keys) == 1 {
			delete(v, key)
			return v, nil
		}
		changed, err := changeValueAtPath(v[key], keys[1:], value, remove, isAppended)
		v[key] = changed
		return v, err
	case []any:
		var i int
		if _, err := fmt.Sscanf(key, "%d", &i); err != nil || i >= len(v) {
			return nil, fmt.Errorf("there is no element %s in a list of %d", key, len(v))
		}
		changed, err := changeValueAtPath(v[i], keys[1:], value, remove, isAppended)
		v[i] = changed
		return v, err
	}
	return nil, fmt.Errorf("there is no field %s in a %T", key, in)
}

// drawSound returns an object of a kind that every cluster accepts.
func drawSound(random *rand.Rand, kind string, number int) (map[string]any, error) {
	name := fmt.Sprintf("%s-%d", strings.ToLower(kind), number)
	replacer := strings.NewReplacer(
		"NAME", name, "POD", drawPod(random, kind), "APP", fmt.Sprintf("app-%d", random.IntN(9)), "PORT", fmt.Sprint(1+random.IntN(60000)), "SMALL", fmt.Sprint(1+random.IntN(9)),
	)
	var out map[string]any
	if err := yaml.Unmarshal([]byte(replacer.Replace(sound[kind])), &out); err != nil {
		return nil, fmt.Errorf("reading a sound %s: %w", kind, err)
	}
	if pod, ok := podPaths[kind]; ok && random.IntN(2) == 0 {
		extra := mistake{at: "{pod}.metadata.annotations", value: `{note: "a b"}`}
		if err := extra.applyToObject(out, kind); err != nil {
			return nil, fmt.Errorf("extending %s: %w", pod, err)
		}
	}
	return out, nil
}

// drawPod returns the spec of a pod in one line of YAML, with all that mistakes are about.
func drawPod(random *rand.Rand, kind string) string {
	restart := "Always"
	if kind == "Job" || kind == "CronJob" {
		restart = []string{"Never", "OnFailure"}[random.IntN(2)]
	}
	more := ""
	for i := range random.IntN(3) {
		more += fmt.Sprintf(`, {name: more-%d, image: "registry.example.com/more:%d"}`, i, random.IntN(9))
	}
	return `{restartPolicy: ` + restart + `, terminationGracePeriodSeconds: ` + fmt.Sprint(random.IntN(90)) +
		`, initContainers: [{name: init, image: "registry.example.com/init:1", command: [sh, -c, "true"]}],
    containers: [{name: web, image: "registry.example.com/web:` + fmt.Sprint(random.IntN(9)) + `", env: [{name: A, value: b}], ports: [{name: http, containerPort: ` + fmt.Sprint(1024+random.IntN(9000)) + `}],
      readinessProbe: {httpGet: {path: /, port: http}}, livenessProbe: {tcpSocket: {port: http}}, lifecycle: {preStop: {exec: {command: [sleep, "5"]}}},
      resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: "1", memory: 128Mi}}, securityContext: {runAsUser: 1000},
      volumeMounts: [{name: data, mountPath: /data}]}` + more + `],
    volumes: [{name: data, emptyDir: {}}, {name: config, configMap: {name: a, items: [{key: a, path: b}]}}], tolerations: [{key: a, operator: Exists}], nodeSelector: {disk: ssd},
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}],
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]}}}`
}
