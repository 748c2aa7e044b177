// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package defaulter

import (
	"fmt"
	"math/rand/v2"
)

// Generator generates pods in which any field that has a default may be missing, empty, null, the default or
// another value.
type Generator struct {
	rnd *rand.Rand
	// minor is the version of Kubernetes: fields that it does not have are left out.
	minor int
	// rough leaves quantities out that are rounded: the requests of a whole pod are summed up before that in a Pod, and
	// after that in a template.
	rough bool
}

// NewGenerator returns a generator for Kubernetes 1.minor; the same seed makes the same pods.
func NewGenerator(seed uint64, minor int) *Generator {
	return &Generator{rnd: rand.New(rand.NewPCG(seed, seed)), minor: minor} //nolint:gosec // these are no secrets
}

// The first minor versions of Kubernetes that have some fields.
const (
	imageVolumes = 31
	podResources = 32
	fileKeyRefs  = 34
)

// Pod makes the metadata and spec of a pod.
func (g *Generator) Pod() map[string]any {
	resources := map[string]any{}
	if g.minor >= podResources {
		g.rough = true
		g.setFieldSometimes(resources, "resources", func() any { return g.resources() })
	}
	_, g.rough = resources["resources"]
	spec := map[string]any{"containers": g.containers("app", 1+g.rnd.IntN(3))}
	g.setFieldSometimes(spec, "initContainers", func() any { return g.containers("init", 1+g.rnd.IntN(2)) })
	g.setFieldSometimes(spec, "ephemeralContainers", func() any { return g.containers("debug", 1) })
	g.setFieldSometimes(spec, "volumes", func() any { return g.volumes() })
	g.setFieldSometimes(spec, "securityContext", g.choiceOf(nil, object{}, object{"fsGroup": int64(5)}))
	g.setFieldSometimes(spec, "restartPolicy", g.choiceOf("", "Always", "Never", nil))
	g.setFieldSometimes(spec, "dnsPolicy", g.choiceOf("", "ClusterFirst", "Default", nil))
	g.setFieldSometimes(spec, "schedulerName", g.choiceOf("", "default-scheduler", "mine", nil))
	g.setFieldSometimes(spec, "terminationGracePeriodSeconds", g.choiceOf(int64(0), int64(30), int64(7), int64(-4), nil))
	g.setFieldSometimes(spec, "enableServiceLinks", g.choiceOf(true, false, nil))
	g.setFieldSometimes(spec, "serviceAccountName", g.choiceOf("", "mine", nil))
	g.setFieldSometimes(spec, "serviceAccount", g.choiceOf("", "old", nil))
	g.setFieldSometimes(spec, "hostNetwork", g.choiceOf(true, false, nil))
	g.setFieldSometimes(spec, "overhead", g.choiceOf(object{"cpu": "1000m"}, nil))
	if v, ok := resources["resources"]; ok {
		spec["resources"] = v
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": spec}
}

// object is a map in what a choice offers. What is chosen is copied.
type object map[string]any

// choiceOf returns a choice of values.
func (g *Generator) choiceOf(values ...any) func() any {
	return func() any {
		v := values[g.rnd.IntN(len(values))]
		if m, ok := v.(object); ok {
			out := map[string]any{}
			for k, e := range m {
				out[k] = e
			}
			return out
		}
		return v
	}
}

// Coin is true half of the time.
func (g *Generator) Coin() bool { return g.rnd.IntN(2) == 0 }

// setFieldSometimes sets a field half of the time.
func (g *Generator) setFieldSometimes(m map[string]any, key string, value func() any) {
	if g.rnd.IntN(2) == 0 {
		m[key] = value()
	}
}

var images = []any{
	"", "auto", "nginx", "nginx:latest", "nginx:1.25", "Nginx", "registry.example/a/b", "registry.example:5000/a/b", "registry.example:5000/a/b:v1",
	"a/b@sha256:" + hash, "a/b:latest@sha256:" + hash, "a/b:v1@sha256:" + hash, "a/b@sha256:abc", "a/b@sha257:" + hash, hash, "x/" + hash,
	"a//b", "a/b:", ":latest", "a__b", "a___b", "a-._b", "a--b", "foo_bar:5000/x", "foo.bar_baz/x", "localhost/x", "LOCAL/x", "[::1]:5000/x", "[::1/x",
	"index.docker.io/nginx", "docker.io/Nginx", "registry.example/A:latest", "a b", "a:la-test", "ünix", "a.b/c", "-a.b/c", "a.b-/c", "a.b:x/c", "a.b:/c", "a/b/",
}

// hash is 64 digits in base 16.
const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (g *Generator) containers(name string, n int) []any {
	var out []any
	for i := range n {
		c := map[string]any{"name": fmt.Sprintf("%s-%d", name, i)}
		g.setFieldSometimes(c, "image", g.choiceOf(images...))
		g.setFieldSometimes(c, "imagePullPolicy", g.choiceOf("", "Always", "IfNotPresent", nil))
		g.setFieldSometimes(c, "terminationMessagePath", g.choiceOf("", "/dev/termination-log", "/x", nil))
		g.setFieldSometimes(c, "terminationMessagePolicy", g.choiceOf("", "File", "FallbackToLogsOnError", nil))
		g.setFieldSometimes(c, "ports", func() any { return g.ports() })
		g.setFieldSometimes(c, "env", func() any { return g.env() })
		g.setFieldSometimes(c, "resources", func() any { return g.resources() })
		for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			g.setFieldSometimes(c, key, func() any { return g.probe() })
		}
		g.setFieldSometimes(c, "lifecycle", func() any { return g.lifecycle() })
		if name == "init" {
			g.setFieldSometimes(c, "restartPolicy", g.choiceOf("Always", nil))
		}
		out = append(out, c)
	}
	return out
}

func (g *Generator) ports() []any {
	var out []any
	for i := range g.rnd.IntN(3) {
		p := map[string]any{"containerPort": int64(8080 + i)}
		g.setFieldSometimes(p, "protocol", g.choiceOf("", "TCP", "UDP", nil))
		g.setFieldSometimes(p, "hostPort", g.choiceOf(int64(0), int64(99), nil))
		g.setFieldSometimes(p, "name", g.choiceOf("http", nil))
		out = append(out, p)
	}
	return out
}

func (g *Generator) env() []any {
	out := []any{map[string]any{"name": "A", "value": "b"}}
	field := map[string]any{"fieldPath": "metadata.name"}
	g.setFieldSometimes(field, "apiVersion", g.choiceOf("", "v1", nil))
	file := map[string]any{"volumeName": "v", "path": "p", "key": "k"}
	g.setFieldSometimes(file, "optional", g.choiceOf(true, false, nil))
	out = append(out, map[string]any{"name": "B", "valueFrom": map[string]any{"fieldRef": field}})
	if g.minor >= fileKeyRefs {
		out = append(out, map[string]any{"name": "C", "valueFrom": map[string]any{"fileKeyRef": file}})
	}
	return out
}

func (g *Generator) resources() any {
	out := map[string]any{}
	for _, key := range []string{"limits", "requests"} {
		g.setFieldSometimes(out, key, func() any {
			list := map[string]any{}
			g.setFieldSometimes(list, "cpu", g.choiceOf("1000m", "2", int64(1), "0.1", "1.5", "0"))
			if !g.rough {
				g.setFieldSometimes(list, "ephemeral-storage", g.choiceOf("100u", "1.0005"))
			}
			g.setFieldSometimes(list, "memory", g.choiceOf("1Gi", "1024Mi", "128Mi", int64(1024), "1e3"))
			g.setFieldSometimes(list, "hugepages-2Mi", g.choiceOf("4Mi", "2048Ki"))
			g.setFieldSometimes(list, "example.com/gpu", g.choiceOf("1", int64(2)))
			return list
		})
	}
	return g.choiceOf(out, nil)()
}

func (g *Generator) probe() any {
	p := map[string]any{}
	for _, key := range []string{"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"} {
		g.setFieldSometimes(p, key, g.choiceOf(int64(0), int64(1), int64(3), int64(10), nil))
	}
	switch g.rnd.IntN(4) {
	case 0:
		p["httpGet"] = g.httpGet()
	case 1:
		p["tcpSocket"] = map[string]any{"port": "http"}
	case 2:
		grpc := map[string]any{"port": int64(8080)}
		g.setFieldSometimes(grpc, "service", g.choiceOf("", "s", nil))
		p["grpc"] = grpc
	default:
		p["exec"] = map[string]any{"command": []any{"true"}}
	}
	return g.choiceOf(p, p, p, nil)()
}

func (g *Generator) httpGet() map[string]any {
	get := map[string]any{"port": int64(8080)}
	g.setFieldSometimes(get, "path", g.choiceOf("", "/", "/ready", nil))
	g.setFieldSometimes(get, "scheme", g.choiceOf("", "HTTP", "HTTPS", nil))
	return get
}

func (g *Generator) lifecycle() any {
	out := map[string]any{}
	g.setFieldSometimes(out, "preStop", func() any { return map[string]any{"httpGet": g.httpGet()} })
	g.setFieldSometimes(out, "postStart", func() any { return map[string]any{"exec": map[string]any{"command": []any{"true"}}} })
	return out
}
