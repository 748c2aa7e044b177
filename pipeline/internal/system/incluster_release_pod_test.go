// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// podRun is the container of a pod that runs without a kubelet.
type podRun struct {
	t    *testing.T
	name string
	env  []string // of docker
}

// docker runs the container runtime, whatever it is.
func (n *podRun) docker(args ...string) string {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "docker", args...)
	cmd.Env = n.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// runPod does with the only container of a pod what a kubelet would: it pulls the image, fills the volumes, and starts it as the pod says.
// The network is the machine's, and resources are not bounded.
func (c *inCluster) runPod(pod *corev1.Pod, registry string) *podRun {
	c.t.Helper()
	n := &podRun{t: c.t, name: filepath.Base(statetest.Dir(c.t))}
	registries := filepath.Join(c.t.TempDir(), "registries.conf") // for podman; docker speaks http to this machine
	if err := os.WriteFile(registries, fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", registry), 0o600); err != nil {
		c.t.Fatal(err)
	}
	n.env = append(os.Environ(), "CONTAINERS_REGISTRIES_CONF="+registries)
	args := append([]string{"run", "--detach", "--name", n.name, "--network", "host"}, c.asThePodSays(pod)...)
	container := pod.Spec.Containers[0]
	c.t.Cleanup(func() {
		logs, _ := exec.Command("docker", "logs", n.name).CombinedOutput()
		if c.t.Failed() {
			c.t.Logf("the container said:\n%s", logs[max(0, len(logs)-8000):])
		}
		_ = exec.Command("docker", "rm", "--force", "--volumes", n.name).Run()
		_ = exec.Command("docker", "rmi", "--force", container.Image).Run()
	})
	n.docker(append(append(args, container.Image), container.Args...)...)
	return n
}

// asThePodSays are the flags for a container by its pod. What it does not know of ends the test.
func (c *inCluster) asThePodSays(pod *corev1.Pod) (flags []string) {
	c.t.Helper()
	container, security := pod.Spec.Containers[0], pod.Spec.SecurityContext
	own := container.SecurityContext
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 || len(container.Command) > 0 || container.WorkingDir != "" ||
		security == nil || security.RunAsUser == nil || security.RunAsGroup == nil || own == nil || own.Capabilities == nil {
		c.t.Fatalf("the pod has something that this does not do: %+v", pod.Spec)
	}
	flags = append(flags, "--user", fmt.Sprintf("%d:%d", *security.RunAsUser, *security.RunAsGroup))
	if own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem {
		flags = append(flags, "--read-only")
	}
	if own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation {
		flags = append(flags, "--security-opt", "no-new-privileges")
	}
	for _, capability := range own.Capabilities.Drop {
		flags = append(flags, "--cap-drop", strings.ToLower(string(capability)))
	}
	server, err := url.Parse(c.config.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	flags = append(flags, "--env", "KUBERNETES_SERVICE_HOST="+server.Hostname(), "--env", "KUBERNETES_SERVICE_PORT="+server.Port())
	for _, one := range container.Env {
		if one.ValueFrom != nil {
			c.t.Fatalf("the variable %s has its value from elsewhere", one.Name)
		}
		flags = append(flags, "--env", one.Name+"="+one.Value)
	}
	for _, mount := range container.VolumeMounts {
		how := ""
		if mount.ReadOnly {
			how = ":ro"
		}
		flags = append(flags, "--volume", c.fill(pod, mount.Name)+":"+mount.MountPath+how)
	}
	return flags
}

// fill makes the directory of a volume.
func (c *inCluster) fill(pod *corev1.Pod, volume string) string {
	c.t.Helper()
	dir := filepath.Join(statetest.Dir(c.t), volume)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Name != volume:
		case v.PersistentVolumeClaim != nil, v.EmptyDir != nil:
			if err := os.Chmod(dir, 0o777); err != nil { // the kubelet gives it to the pod's group
				c.t.Fatal(err)
			}
			return dir
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				c.project(pod, source, dir)
			}
			return dir
		default:
			c.t.Fatalf("the volume %s is of an unknown kind: %+v", volume, v)
		}
	}
	c.t.Fatalf("the pod has no volume %s", volume)
	return ""
}

// project writes the files of one source of a projected volume.
func (c *inCluster) project(pod *corev1.Pod, source corev1.VolumeProjection, dir string) {
	c.t.Helper()
	files := map[string]string{}
	switch {
	case source.ConfigMap != nil && source.ConfigMap.Name == "kube-root-ca.crt":
		ca, err := os.ReadFile(c.config.CAFile)
		if err != nil {
			c.t.Fatal(err)
		}
		files["ca.crt"] = string(ca)
	case source.ConfigMap != nil && len(source.ConfigMap.Items) == 0:
		found, err := c.dynamic.Resource(mapGVR).Namespace(pod.Namespace).Get(c.t.Context(), source.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		if files, _, err = unstructured.NestedStringMap(found.Object, "data"); err != nil {
			c.t.Fatal(err)
		}
	case source.ServiceAccountToken != nil:
		config, err := clientcmd.LoadFromFile(c.serviceAccount(pod.Namespace, pod.Spec.ServiceAccountName))
		if err != nil {
			c.t.Fatal(err)
		}
		files[source.ServiceAccountToken.Path] = config.AuthInfos["u"].Token
	case source.DownwardAPI != nil && len(source.DownwardAPI.Items) == 1 && source.DownwardAPI.Items[0].Path == "namespace":
		files["namespace"] = pod.Namespace
	default:
		c.t.Fatalf("a projected volume has an unknown source: %+v", source)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}
