// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// tampering is a way in which a pod gets to be something else than what was committed.
type tampering struct {
	name string
	// kind of the workload; "" is a Deployment.
	kind string
	// late is how long the webhook takes with a pod.
	late time.Duration
	// pods are how many the workload has, 0 is one.
	pods int
	// state and field are what prerig verify is to say, cause who did it.
	state, field, cause string
	// admitted is the JSON patch of a webhook.
	admitted string
	// updated is a JSON patch of the pod after it was created, of the subresource, and then one of the pod itself after that.
	updated, subresource, then string
	// edited is a JSON patch of the workload.
	edited string
}

const (
	atApp  = "/spec/containers/0/"
	inApp  = "spec.containers[app]."
	noted  = "Changed"
	byHook = "Admission"
)

// admitted are webhooks' doings.
func admittedTamperings() []tampering {
	var out []tampering
	add := func(name, field, patch string) {
		out = append(out, tampering{name: name, state: noted, field: field, cause: byHook, admitted: patch})
	}
	add("container", "spec.containers[miner]", `{"op":"add","path":"/spec/containers/-","value":{"name":"miner","image":"x:1"}}`)
	add("init-container", "spec.initContainers[first]", `{"op":"add","path":"/spec/initContainers","value":[{"name":"first","image":"x:1"}]}`)
	add("image", inApp+"image", `{"op":"replace","path":"`+atApp+`image","value":"mirror.example.com/app:1"}`)
	add("tag", inApp+"image", `{"op":"replace","path":"`+atApp+`image","value":"registry.example.com/app:2"}`)
	add("command", inApp+"command", `{"op":"replace","path":"`+atApp+`command","value":["/bin/other"]}`)
	add("args", inApp+"args", `{"op":"add","path":"`+atApp+`args/-","value":"--debug"}`)
	add("env-added", inApp+"env[LD_PRELOAD]", `{"op":"add","path":"`+atApp+`env/-","value":{"name":"LD_PRELOAD","value":"/x.so"}}`)
	add("env-changed", inApp+"env[A].value", `{"op":"replace","path":"`+atApp+`env/0/value","value":"2"}`)
	add("env-removed", inApp+"env[B]", `{"op":"remove","path":"`+atApp+`env/1"}`)
	add("env-order", inApp+"env", `{"op":"move","from":"`+atApp+`env/0","path":"`+atApp+`env/1"}`)
	add("env-from", inApp+"envFrom", `{"op":"add","path":"`+atApp+`envFrom","value":[{"secretRef":{"name":"s"}}]}`)
	add("port", inApp+"ports[9999/TCP]", `{"op":"add","path":"`+atApp+`ports/-","value":{"containerPort":9999}}`)
	add("host-path", "spec.volumes[host]", `{"op":"add","path":"/spec/volumes/-","value":{"name":"host","hostPath":{"path":"/"}}}`)
	add("volume-changed", "spec.volumes[data].emptyDir.medium", `{"op":"add","path":"/spec/volumes/0/emptyDir/medium","value":"Memory"}`)
	add("volume-lookalike", "spec.volumes[kube-api-access-abcde]",
		`{"op":"add","path":"/spec/volumes/-","value":{"name":"kube-api-access-abcde","projected":{"sources":[{"secret":{"name":"s"}}]}}}`)
	add("mount", inApp+"volumeMounts[/extra]", `{"op":"add","path":"`+atApp+`volumeMounts/-","value":{"name":"data","mountPath":"/extra"}}`)
	add("mount-read-only", inApp+"volumeMounts[/data].readOnly", `{"op":"add","path":"`+atApp+`volumeMounts/0/readOnly","value":true}`)
	add("privileged", inApp+"securityContext.privileged", `{"op":"add","path":"`+atApp+`securityContext/privileged","value":true}`)
	add("capability", inApp+"securityContext.capabilities", `{"op":"add","path":"`+atApp+`securityContext/capabilities","value":{"add":["SYS_ADMIN"]}}`)
	add("root", "spec.securityContext.runAsUser", `{"op":"add","path":"/spec/securityContext","value":{"runAsUser":0}}`)
	add("host-pid", "spec.hostPID", `{"op":"add","path":"/spec/hostPID","value":true}`)
	add("host-network", "spec.hostNetwork", `{"op":"add","path":"/spec/hostNetwork","value":true}`)
	add("process-namespace", "spec.shareProcessNamespace", `{"op":"add","path":"/spec/shareProcessNamespace","value":true}`)
	add("account", "spec.serviceAccountName", `{"op":"replace","path":"/spec/serviceAccountName","value":"web"}`)
	add("toleration", "spec.tolerations", `{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}`)
	add("node-selector", "spec.nodeSelector.disk", `{"op":"add","path":"/spec/nodeSelector","value":{"disk":"ssd"}}`)
	add("affinity", "spec.affinity", `{"op":"add","path":"/spec/affinity","value":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[`+
		`{"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{}}}]}}}`)
	add("scheduler", "spec.schedulerName", `{"op":"replace","path":"/spec/schedulerName","value":"other"}`)
	add("dns", "spec.dnsConfig", `{"op":"add","path":"/spec/dnsConfig","value":{"searches":["evil.example.com"]}}`)
	add("dns-policy", "spec.dnsPolicy", `{"op":"replace","path":"/spec/dnsPolicy","value":"Default"}`)
	add("host-alias", "spec.hostAliases[10.0.0.1]", `{"op":"add","path":"/spec/hostAliases","value":[{"ip":"10.0.0.1","hostnames":["bank.example.com"]}]}`)
	add("pull-secret", "spec.imagePullSecrets[mirror]", `{"op":"add","path":"/spec/imagePullSecrets","value":[{"name":"mirror"}]}`)
	add("limits", inApp+"resources.limits.memory", `{"op":"replace","path":"`+atApp+`resources/limits/memory","value":"1Gi"}`)
	add("requests", inApp+"resources.requests.cpu", `{"op":"replace","path":"`+atApp+`resources/requests/cpu","value":"1m"}`)
	add("probe-changed", inApp+"livenessProbe.httpGet.path", `{"op":"replace","path":"`+atApp+`livenessProbe/httpGet/path","value":"/other"}`)
	add("probe-removed", inApp+"livenessProbe", `{"op":"remove","path":"`+atApp+`livenessProbe"}`)
	add("hook", inApp+"lifecycle", `{"op":"add","path":"`+atApp+`lifecycle","value":{"preStop":{"exec":{"command":["sh"]}}}}`)
	add("grace", "spec.terminationGracePeriodSeconds", `{"op":"replace","path":"/spec/terminationGracePeriodSeconds","value":1}`)
	add("label-added", "metadata.labels.team", `{"op":"add","path":"/metadata/labels/team","value":"red"}`)
	add("label-changed", "metadata.labels.tier", `{"op":"replace","path":"/metadata/labels/tier","value":"db"}`)
	add("annotation-added", `metadata.annotations["example.com/x"]`, `{"op":"add","path":"/metadata/annotations/example.com~1x","value":"y"}`)
	add("annotation-removed", "metadata.annotations.note", `{"op":"remove","path":"/metadata/annotations/note"}`)
	add("finalizer", "metadata.finalizers[example.com/stay]", `{"op":"add","path":"/metadata/finalizers","value":["example.com/stay"]}`)
	add("pull-policy", inApp+"imagePullPolicy", `{"op":"replace","path":"`+atApp+`imagePullPolicy","value":"Always"}`)
	add("order", "spec.containers", `{"op":"move","from":"/spec/containers/1","path":"/spec/containers/0"}`)
	add("service-links", "spec.enableServiceLinks", `{"op":"replace","path":"/spec/enableServiceLinks","value":false}`)
	add("runtime-class", "spec.runtimeClassName", `{"op":"add","path":"/spec/runtimeClassName","value":"own"}`)
	out = append(out,
		// The API server takes the pod's time after its webhooks, and that of who creates it before them.
		tampering{name: "late", state: noted, field: "metadata.labels.team", cause: byHook, late: 3 * time.Second,
			admitted: `{"op":"add","path":"/metadata/labels/team","value":"red"}`},
		tampering{name: "set-admitted", kind: "StatefulSet", state: noted, field: inApp + "image", cause: byHook, admitted: `{"op":"replace","path":"` + atApp + `image","value":"x:1"}`},
		tampering{name: "daemon-admitted", kind: "DaemonSet", state: noted, field: inApp + "image", cause: byHook, admitted: `{"op":"replace","path":"` + atApp + `image","value":"x:1"}`},
		tampering{name: "job-admitted", kind: "Job", state: noted, field: inApp + "image", cause: byHook, admitted: `{"op":"replace","path":"` + atApp + `image","value":"x:1"}`},
	)
	return out
}

// afterwards are changes of pods and of workloads that somebody makes.
func afterwards() []tampering {
	const update, edit, resize = "Update", "Workload", "Resize"
	const moreCPU = `{"op":"replace","path":"` + atApp + `resources/requests/cpu","value":"600m"}`
	return []tampering{
		{name: "image-updated", state: noted, field: inApp + "image", cause: update, updated: `{"op":"replace","path":"` + atApp + `image","value":"x:1"}`},
		{name: "label-updated", state: noted, field: "metadata.labels.tier", cause: update, updated: `{"op":"replace","path":"/metadata/labels/tier","value":"db"}`},
		{name: "annotation-updated", state: noted, field: "metadata.annotations.by", cause: update, updated: `{"op":"add","path":"/metadata/annotations/by","value":"hand"}`},
		{name: "toleration-updated", state: noted, field: "spec.tolerations", cause: update,
			updated: `{"op":"add","path":"/spec/tolerations/-","value":{"key":"x","operator":"Exists"}}`},
		{name: "deadline-updated", state: noted, field: "spec.activeDeadlineSeconds", cause: update, updated: `{"op":"add","path":"/spec/activeDeadlineSeconds","value":9999}`},
		{name: "debug", state: noted, field: "spec.ephemeralContainers[shell]", cause: update, subresource: "ephemeralcontainers",
			updated: `{"op":"add","path":"/spec/ephemeralContainers","value":[{"name":"shell","image":"busybox:1"}]}`},
		{name: "cpu-resized", state: "Resized", field: inApp + "resources.requests.cpu", cause: resize, subresource: "resize", updated: moreCPU},
		{name: "memory-resized", state: "Resized", field: inApp + "resources.limits.memory", cause: resize, subresource: "resize",
			updated: `{"op":"replace","path":"` + atApp + `resources/limits/memory","value":"128Mi"}`},
		{name: "resized-then-updated", state: noted, field: inApp + "image", cause: update, subresource: "resize", updated: moreCPU,
			then: `{"op":"replace","path":"` + atApp + `image","value":"x:1"}`},
		{name: "deployment-edited", state: noted, field: inApp + "image", cause: edit, edited: `{"op":"replace","path":"/spec/template` + atApp + `image","value":"x:1"}`},
		{name: "set-edited", kind: "StatefulSet", state: noted, field: inApp + "env[A].value", cause: edit,
			edited: `{"op":"replace","path":"/spec/template` + atApp + `env/0/value","value":"3"}`},
		{name: "daemon-edited", kind: "DaemonSet", state: noted, field: inApp + "image", cause: edit,
			edited: `{"op":"replace","path":"/spec/template` + atApp + `image","value":"x:1"}`},
	}
}

// tamperingWebhook serves the patches by the names in the label app, and returns its URL and what the API server trusts.
func (c *Cluster) tamperingWebhook(t *testing.T, all []tampering) (url, bundle string) {
	t.Helper()
	done := map[string]tampering{}
	for _, one := range all {
		done[one.name] = one
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var review admissionv1.AdmissionReview
		var pod struct {
			Metadata struct{ Labels map[string]string }
		}
		if json.Unmarshal(body, &review) != nil || review.Request == nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		one := done[pod.Metadata.Labels["app"]]
		select {
		case <-r.Context().Done():
		case <-time.After(one.late):
		}
		if patch := one.admitted; patch != "" {
			kind := admissionv1.PatchTypeJSONPatch
			review.Response.Patch, review.Response.PatchType = []byte("["+patch+"]"), &kind
		}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, serverCertFile), filepath.Join(c.dir, serverKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca, err := os.ReadFile(filepath.Join(c.dir, caFile))
	if err != nil {
		t.Fatal(err)
	}
	return server.URL, base64.StdEncoding.EncodeToString(ca)
}

// addTamperingWebhook has the API server call the webhook for the pods of namespaces with the label tamper, and waits until
// it does.
func (c *Cluster) addTamperingWebhook(ctx context.Context, url, bundle string) error {
	_, err := c.Create(ctx, newUnstructuredObject(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "tamper"},
		"webhooks": []any{map[string]any{
			"name": "pods.tamper.example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
			"clientConfig":      map[string]any{"url": url, "caBundle": bundle},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"tamper": "true"}},
			"rules": []any{map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"},
			}},
		}},
	}))
	if err != nil {
		return err
	}
	probe := newUnstructuredObject(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
			"name": "probe", "namespace": "tampered", "labels": map[string]any{"app": "probe"}, "annotations": map[string]any{},
		},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "x:1"}}},
	})
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		got, err := c.Try(ctx, probe)
		if err == nil && got.GetLabels()["probed"] != "true" {
			return errNotCalled
		}
		return err
	})
}
