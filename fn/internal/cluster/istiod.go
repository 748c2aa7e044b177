// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/prerig/prerig/internal/freeport"
)

const istioNamespace = "istio-system"

// InstallIstio installs Istio with its own charts, base and istiod, and runs istiod as a process of this machine
// with the variables of its Deployment. The values are those of both charts, without the tag, which is
// IstioVersion; a revision among them is respected. The resources, of Istio's kinds, exist when istiod starts. It
// waits until the webhook injects.
func (c *Cluster) InstallIstio(ctx context.Context, values map[string]any, resources ...*unstructured.Unstructured) error {
	began := time.Now()
	address, err := ownAddress()
	if err != nil {
		return err
	}
	ports, err := freeport.Find(address, 6)
	if err != nil {
		return err
	}
	revision, _ := values["revision"].(string)
	if err := c.AddNamespace(ctx, istioNamespace, nil, nil); err != nil {
		return err
	}
	// Without a tag the charts claim a version that never was.
	if values, err = withTag(values); err != nil {
		return fmt.Errorf("reading the values of the charts: %w", err)
	}
	var env []string
	for _, chart := range []struct{ name, path string }{{"istio-base", "base"}, {"istiod", "istio-control/istio-discovery"}} {
		objects, err := renderIstioChart(ctx, c, chart.name, chart.path, values)
		if err != nil {
			return err
		}
		found, err := c.installChartObjects(ctx, objects, istiodOf(revision))
		if err != nil {
			return fmt.Errorf("installing the chart %s: %w", chart.path, err)
		}
		env = append(env, found...)
	}
	for _, r := range resources {
		if err := c.pollUntilReady(ctx, func(ctx context.Context) error { return createOfNewKind(ctx, c, r) }); err != nil {
			return fmt.Errorf("adding the %s %s: %w", r.GetKind(), r.GetName(), err)
		}
	}
	for _, endpoints := range istiodEndpoints(istiodOf(revision), address, ports[0]) {
		if _, err := c.Create(ctx, endpoints); err != nil {
			return fmt.Errorf("saying where istiod listens: %w", err)
		}
	}
	at := func(i int) string { return net.JoinHostPort(address, fmt.Sprint(ports[i])) }
	if err := c.writeKubeconfig("istiod", impersonateServiceAccount(istioNamespace, istiodOf(revision))); err != nil {
		return err
	}
	_, err = c.launchComponent("istiod", env, c.programs.Istiod, "discovery", "--kubeconfig", c.kubeconfigPath("istiod"),
		"--httpsAddr", at(0), "--httpAddr", at(1), "--grpcAddr", at(2), "--secureGRPCAddr", at(3), "--monitoringAddr", at(4),
		"--ctrlz_address", address, "--ctrlz_port", fmt.Sprint(ports[5]), "--domain", "cluster.local",
	)
	if err != nil {
		return err
	}
	if err := c.pollUntilReady(ctx, func(ctx context.Context) error { return c.checkRevisionInjects(ctx, revision) }); err != nil {
		return fmt.Errorf("starting istiod: %w", err)
	}
	c.options.Say("istiod was installed and injected after %s", time.Since(began).Round(10*time.Millisecond))
	return nil
}

// createOfNewKind creates an object whose kind the API server may not know yet although its definition is stored.
func createOfNewKind(ctx context.Context, c *Cluster, obj *unstructured.Unstructured) error {
	_, err := c.Create(ctx, obj)
	if meta.IsNoMatchError(err) {
		c.forgetKinds()
	}
	return err
}

// impersonateServiceAccount returns how the administrator acts as a service account, with its rights alone.
func impersonateServiceAccount(namespace, name string) map[string]any {
	return map[string]any{
		"token": "administrator", "as": "system:serviceaccount:" + namespace + ":" + name,
		"as-groups": []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// istiodOf returns the name of the Service, the Deployment and the service account of a revision, "" for the default one.
func istiodOf(revision string) string {
	if revision == "" {
		return "istiod"
	}
	return "istiod-" + revision
}

// withTag returns values with the tag of the version that istiod is.
func withTag(values map[string]any) (map[string]any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if out == nil { // of nil
		out = map[string]any{}
	}
	return out, unstructured.SetNestedField(out, IstioVersion, "global", "tag")
}

// renderIstioChart renders a chart of Istio.
func renderIstioChart(ctx context.Context, c *Cluster, release, chart string, values map[string]any) ([]*unstructured.Unstructured, error) {
	request, err := json.Marshal(map[string]any{
		"release": release, "chart": chart, "kubernetesVersion": c.programs.Kubernetes, "values": values,
	})
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, c.programs.Charts)
	command.Stdin = bytes.NewReader(request)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering the chart %s: %w\n%s", chart, err, stderr.String())
	}
	var answer struct{ Manifests, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("rendering the chart %s: %w", chart, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("rendering the chart %s: %s", chart, answer.Error)
	}
	return decodeAll([]byte(answer.Manifests))
}

// decodeAll decodes a stream of YAML documents. With an error it returns those that come before.
func decodeAll(stream []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, err
		}
		if len(content) > 0 {
			out = append(out, newUnstructuredObject(content))
		}
	}
}

// installChartObjects creates a chart's objects as far as they make sense without containers, and returns the variables
// of istiod. The Service and Deployment of istiod are named by the istiod parameter.
func (c *Cluster) installChartObjects(ctx context.Context, objects []*unstructured.Unstructured, istiod string) (env []string, err error) {
	for _, obj := range objects {
		switch {
		case obj.GetKind() == "Service" && obj.GetName() == istiod:
			// The Endpoints of a Service without a selector are ours to make.
			unstructured.RemoveNestedField(obj.Object, "spec", "selector")
		case obj.GetKind() == "Deployment" && obj.GetName() == istiod:
			if env, err = istiodEnvironment(obj); err != nil {
				return nil, err
			}
			if err := unstructured.SetNestedField(obj.Object, int64(0), "spec", "replicas"); err != nil {
				return nil, err
			}
		}
		if _, err := c.Create(ctx, obj); err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	c.forgetKinds()
	return env, nil
}

// istiodEnvironment returns the variables of istiod's container, as a kubelet would set them.
func istiodEnvironment(deployment *unstructured.Unstructured) ([]string, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &d); err != nil {
		return nil, err
	}
	fields := map[string]string{"metadata.name": "istiod-0", "metadata.namespace": istioNamespace, "spec.serviceAccountName": d.Spec.Template.Spec.ServiceAccountName}
	var out []string
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		switch {
		case v.Name == "KUBECONFIG": // the file of a secret that does not exist
		case v.ValueFrom == nil:
			out = append(out, v.Name+"="+v.Value)
		case v.ValueFrom.FieldRef != nil:
			out = append(out, v.Name+"="+fields[v.ValueFrom.FieldRef.FieldPath])
		}
	}
	return out, nil
}

// istiodEndpoints returns the endpoints that route istiod's Service to the process on this machine. The API server
// finds a webhook through the EndpointSlice, and before Kubernetes 1.33 through the Endpoints.
func istiodEndpoints(service, address string, port int) []*unstructured.Unstructured {
	ports := []any{map[string]any{"name": "https-webhook", "port": int64(port), "protocol": "TCP"}}
	return []*unstructured.Unstructured{
		newUnstructuredObject(map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata": map[string]any{
				"name": "istiod-process", "namespace": istioNamespace,
				"labels": map[string]any{"kubernetes.io/service-name": service},
			},
			"addressType": "IPv4",
			"endpoints":   []any{map[string]any{"addresses": []any{address}, "conditions": map[string]any{"ready": true}}},
			"ports":       ports,
		}),
		newUnstructuredObject(map[string]any{
			"apiVersion": "v1", "kind": "Endpoints",
			"metadata": map[string]any{
				"name": service, "namespace": istioNamespace,
				"labels": map[string]any{"endpointslice.kubernetes.io/skip-mirror": "true"},
			},
			"subsets": []any{map[string]any{"addresses": []any{map[string]any{"ip": address}}, "ports": ports}},
		}),
	}
}

// ownAddress returns a non-loopback address of this machine: endpoints must not be loopback, so a Service cannot
// lead to one.
func ownAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback, and no Service can lead to that: give an interface one")
}

// checkRevisionInjects asks whether the webhook of a revision injects into a pod that wants it.
func (c *Cluster) checkRevisionInjects(ctx context.Context, revision string) error {
	made, err := dryRunRevisionPod(ctx, c, revision)
	if err != nil {
		return err
	}
	if made.GetAnnotations()["sidecar.istio.io/status"] == "" {
		return errors.New("the webhook does not inject")
	}
	return nil
}

// dryRunRevisionPod returns what the API server would store of a pod that wants to be injected by a revision.
func dryRunRevisionPod(ctx context.Context, c *Cluster, revision string) (*unstructured.Unstructured, error) {
	labels := map[string]string{"sidecar.istio.io/inject": "true"}
	if revision != "" {
		labels["istio.io/rev"] = revision
	}
	pod, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "asked", Namespace: "default", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	})
	if err != nil {
		return nil, err
	}
	return c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default").
		Create(ctx, newUnstructuredObject(pod), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
