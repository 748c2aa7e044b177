// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/prerig/prerig/internal/freeport"
)

// startEtcd starts the store. It does not have to survive, so it does not wait for the disk.
func (c *Cluster) startEtcd(ctx context.Context) error {
	ports, err := freeport.Find("127.0.0.1", 2)
	if err != nil {
		return err
	}
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	_, err = c.launchComponent("etcd", nil, c.programs.Etcd,
		"--data-dir", filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
	)
	if err != nil {
		return err
	}
	c.etcd = url
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s/health: %s", url, answer.Status)
		}
		return nil
	})
}

// startAPIServer starts kube-apiserver with its usual admission plugins. It calls webhooks at the addresses of
// their Services, since no kube-proxy is running.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	args := []string{
		"--etcd-servers=" + c.etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + c.server[strings.LastIndex(c.server, ":")+1:],
		"--tls-cert-file=" + file(serverCertFile), "--tls-private-key-file=" + file(serverKeyFile),
		"--cert-dir=" + file("apiserver"),
		"--token-auth-file=" + file(tokenFile), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file(serviceAccountFile), "--service-account-signing-key-file=" + file(serviceAccountFile),
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--enable-aggregator-routing=true", "--endpoint-reconciler-type=none",
		"--event-ttl=10m", // all of them are listed again and again
	}
	if len(c.options.AdmissionPlugins) > 0 {
		args = append(args, "--enable-admission-plugins="+strings.Join(c.options.AdmissionPlugins, ","))
	}
	if c.options.AdmissionConfig != "" {
		if err := os.WriteFile(file("admission.yaml"), []byte(c.options.AdmissionConfig), 0o600); err != nil {
			return err
		}
		args = append(args, "--admission-control-config-file="+file("admission.yaml"))
	}
	args = append(args, c.options.APIServerFlags...)
	if _, err := c.launchComponent("kube-apiserver", nil, c.programs.APIServer, args...); err != nil {
		return err
	}
	var err error
	if c.client, err = newClient(c.restConfig()); err != nil {
		return err
	}
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		return c.client.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllers starts kube-controller-manager without the controllers that need a kubelet, and waits until it
// has created the service account of the namespace default: without it no pod is admitted.
func (c *Cluster) startControllers(ctx context.Context) error {
	_, err := c.launchComponent("kube-controller-manager", nil, c.programs.ControllerManager,
		"--kubeconfig="+c.kubeconfigPath("controller-manager"),
		"--controllers="+enabledControllersFlag(c.programs.Kubernetes),
		"--service-account-private-key-file="+filepath.Join(c.dir, serviceAccountFile),
		"--root-ca-file="+filepath.Join(c.dir, caFile),
		"--leader-elect=false", "--secure-port=0", "--cert-dir="+filepath.Join(c.dir, "controllers"),
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	)
	if err != nil {
		return err
	}
	return c.awaitServiceAccount(ctx, metav1.NamespaceDefault)
}

// enabledControllersFlag returns the flag of a version's kube-controller-manager that leaves out what needs a kubelet.
// One that it does not know makes it end.
func enabledControllersFlag(kubernetes string) string {
	flag := "*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller"
	if version.MustParseSemantic(kubernetes).AtLeast(version.MustParseSemantic("1.33.0")) {
		flag += ",-device-taint-eviction-controller"
	}
	return flag
}

// awaitServiceAccount waits for a namespace's default service account.
func (c *Cluster) awaitServiceAccount(ctx context.Context, namespace string) error {
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		_, err := c.dynamic.Resource(serviceAccounts).Namespace(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// AddNamespace adds a namespace, or labels and annotates an existing one, and waits until pods can be created in
// it.
func (c *Cluster) AddNamespace(ctx context.Context, name string, labels, annotations map[string]string) error {
	n := newUnstructuredObject(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	n.SetLabels(labels)
	n.SetAnnotations(annotations)
	_, err := c.Create(ctx, n)
	if apierrors.IsAlreadyExists(err) {
		var patch []byte
		if patch, err = n.MarshalJSON(); err == nil {
			_, err = c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
				Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("adding the namespace %s: %w", name, err)
	}
	if c.options.WithoutControllers {
		account := newUnstructuredObject(map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": name},
		})
		if _, err := c.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("adding the service account of the namespace %s: %w", name, err)
		}
	}
	return c.awaitServiceAccount(ctx, name)
}
