// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fiveChanges are what a webhook does that prerig admit does not know.
var fiveChanges = tampering{name: "web", admitted: `{"op":"add","path":"/metadata/labels/five","value":"1"},
{"op":"add","path":"/metadata/annotations/five.example.com~1by","value":"webhook"},
{"op":"replace","path":"/spec/terminationGracePeriodSeconds","value":7},
{"op":"replace","path":"/spec/containers/0/image","value":"mirror.example.com/web:1"},
{"op":"add","path":"/spec/containers/0/env","value":[{"name":"FIVE","value":"5"}]}`}

// webWorkload is a workload that the webhook changes and a policy, a LimitRange and a PriorityClass too.
const webWorkload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: tampered}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {note: kept}}
    spec:
      priorityClassName: high
      containers: [{name: web, image: "registry.example.com/web:1"}]
`

// askedPod is what prerig admit prints of a pod that a cluster was asked about.
type askedPod struct {
	Live *struct {
		Pod        map[string]any `json:"pod"`
		Unanswered string         `json:"unanswered"`
		Fields     []struct {
			Field       string   `json:"field"`
			AsPredicted bool     `json:"asPredicted"`
			Suspects    []string `json:"suspects"`
			Reason      *struct {
				Step string `json:"step"`
			} `json:"reason"`
		} `json:"fields"`
	} `json:"live"`
}

// TestAdmitAsksACluster has prerig admit send the pods of a workload to a cluster whose webhook changes five fields: it
// names them with the webhook, all others with the reasons of the prediction, and stores nothing.
func TestAdmitAsksACluster(t *testing.T) {
	c := started(t, programs(t, "etcd", apiServer), Options{WithoutControllers: true})
	program := builtPrerig(t)
	if err := c.AddNamespace(t.Context(), "tampered", map[string]string{"tamper": "true"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.AddLimits(t.Context(), "tampered", "default"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), converted(t, classes()[0])); err != nil {
		t.Fatal(err)
	}
	probe := tampering{name: "probe", admitted: `{"op":"add","path":"/metadata/labels/probed","value":"true"}`}
	url, bundle := c.tamperingWebhook(t, []tampering{fiveChanges, probe})
	if err := c.addTamperingWebhook(t.Context(), url, bundle); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(webWorkload), 0o600); err != nil {
		t.Fatal(err)
	}

	pods, exit := askCluster(t, program, c.Kubeconfig, file)
	if exit != 1 || len(pods) != 1 || pods[0].Live == nil || pods[0].Live.Pod == nil {
		t.Fatalf("exit code %d: %+v", exit, pods)
	}
	var changed []string
	predicted := 0
	for _, f := range pods[0].Live.Fields {
		switch {
		case !f.AsPredicted:
			changed = append(changed, f.Field)
			if !slices.Equal(f.Suspects, []string{"tamper/pods.tamper.example.com"}) {
				t.Errorf("%s: the suspects are %v", f.Field, f.Suspects)
			}
		case f.Reason == nil || f.Reason.Step == "":
			t.Errorf("%s has no reason", f.Field)
		default:
			predicted++
		}
	}
	want := []string{
		`metadata.annotations["five.example.com/by"]`, "metadata.labels.five", "spec.containers[web].env[FIVE].name", "spec.containers[web].env[FIVE].value",
		"spec.containers[web].image", "spec.terminationGracePeriodSeconds",
	}
	if !slices.Equal(changed, want) || predicted < 20 {
		t.Errorf("the webhook changes %v, and %d fields are as predicted", changed, predicted)
	}
	stored, err := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(stored.Items) > 0 {
		t.Errorf("%d pods are stored: %v", len(stored.Items), err)
	}
	t.Run("without permission", func(t *testing.T) {
		pods, exit := askCluster(t, program, c.kubeconfigPath("verifier"), file)
		if exit != 1 || len(pods) != 1 || pods[0].Live == nil || !strings.Contains(pods[0].Live.Unanswered, "permission to create pods in namespace tampered") {
			t.Errorf("exit code %d: %+v", exit, pods)
		}
	})
}

// askCluster runs prerig admit for a file and a cluster.
func askCluster(t *testing.T, program, kubeconfig, file string) ([]askedPod, int) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "admit", "--as-is", "-o", "json", "--kubeconfig", kubeconfig, file)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	_ = command.Run()
	var pods []askedPod
	if err := json.Unmarshal(out.Bytes(), &pods); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	return pods, command.ProcessState.ExitCode()
}
