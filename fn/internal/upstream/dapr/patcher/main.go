// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command patcher returns the results of Dapr's sidecar injector for pods: it reads requests as JSON from standard
// input, one after the other, and writes an answer for each on a line of its own to standard output. A request is
//
//	{"settings": {…}, "pod": {…}}
//
// where the settings are those of the injector; see [settings]. The answer is {"pod": {…}}, with the pod unchanged
// if the injector leaves it alone, or {"error": "…"} if it rejects the pod. With -version it writes the version of
// Dapr and exits.
//
// The patch is Dapr's own. The preceding steps of the injector's service, reading its settings and checking
// dapr.io/enabled, are not exported, and are reimplemented here after pkg/injector/service/pod_patch.go and
// handler.go.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/dapr/dapr/pkg/injector/annotations"
	"github.com/dapr/dapr/pkg/injector/consts"
	"github.com/dapr/dapr/pkg/injector/patcher"
	"github.com/dapr/kit/logger"
	corev1 "k8s.io/api/core/v1"
)

// settings are those of the injector, as set by the environment and the flags of its Deployment.
type settings struct {
	Image                       string
	ImagePullPolicy             corev1.PullPolicy
	Namespace                   string // of the control plane
	ClusterDomain               string
	TrustDomain                 string
	TrustAnchors                string // PEM
	MTLS                        bool
	Actors                      bool
	Scheduler                   bool
	RunAsNonRoot                bool
	RunAsUser                   *int64
	RunAsGroup                  *int64
	ReadOnlyRootFilesystem      bool
	DropAllCapabilities         bool
	DownwardAPIs                bool
	NativeSidecar               bool
	IgnoreEntrypointTolerations []corev1.Toleration
}

type request struct {
	Settings settings
	Pod      json.RawMessage
}

type answer struct {
	Pod   json.RawMessage `json:"pod,omitempty"`
	Error string          `json:"error,omitempty"`
}

func main() {
	version := flag.Bool("version", false, "write the version of Dapr")
	flag.Parse()
	if *version {
		fmt.Println(daprVersion())
		return
	}
	// Dapr logs to standard output, which carries the answers.
	quiet := logger.DefaultOptions()
	if err := errors.Join(quiet.SetOutputLevel("fatal"), logger.ApplyOptionsToLoggers(&quiet), answerAll(os.Stdin, os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "patcher:", err)
		os.Exit(1)
	}
}

// daprVersion is the version of the module that the patches are from, such as v1.18.3.
func daprVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "github.com/dapr/dapr" {
				return m.Version
			}
		}
	}
	return "unknown"
}

// answerAll reads requests until the end and writes the answer to each. The error is about the streams only.
func answerAll(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var req request
		err := decoder.Decode(&req)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading standard input: %w", err)
		}
		pod, err := inject(req)
		a := answer{Pod: pod}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := encoder.Encode(a); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
	}
}

// inject returns the pod with Dapr's sidecar, or as it was where the injector leaves it alone.
func inject(req request) (json.RawMessage, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(req.Pod, &pod); err != nil {
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	if !strings.EqualFold(pod.Annotations[annotations.KeyEnabled], "true") {
		return req.Pod, nil
	}
	patch, err := sidecarConfig(&pod, req.Settings).GetPatch()
	if err != nil || len(patch) == 0 {
		return req.Pod, err
	}
	out, err := patch.Apply(req.Pod)
	if err != nil {
		return nil, fmt.Errorf("applying Dapr's patch: %w", err)
	}
	return out, nil
}

// sidecarConfig sets what the injector's service sets before the pod's annotations count.
func sidecarConfig(pod *corev1.Pod, s settings) *patcher.SidecarConfig {
	c := patcher.NewSidecarConfig(pod)
	c.Mode = consts.ModeKubernetes
	c.Namespace = pod.Namespace
	c.MTLSEnabled = s.MTLS
	c.Identity = pod.Namespace + ":" + pod.Spec.ServiceAccountName
	c.IgnoreEntrypointTolerations = s.IgnoreEntrypointTolerations
	c.ImagePullPolicy = s.ImagePullPolicy
	c.OperatorAddress = patcher.ServiceAPI.Address(s.Namespace, s.ClusterDomain)
	c.SentryAddress = patcher.ServiceSentry.Address(s.Namespace, s.ClusterDomain)
	c.RunAsNonRoot, c.RunAsUser, c.RunAsGroup = s.RunAsNonRoot, s.RunAsUser, s.RunAsGroup
	c.ReadOnlyRootFilesystem = s.ReadOnlyRootFilesystem
	c.EnableK8sDownwardAPIs = s.DownwardAPIs
	c.SidecarDropALLCapabilities = s.DropAllCapabilities
	c.ControlPlaneNamespace, c.ControlPlaneTrustDomain = s.Namespace, s.TrustDomain
	c.SentrySPIFFEID = fmt.Sprintf("spiffe://%s/ns/%s/dapr-sentry", s.TrustDomain, s.Namespace)
	c.CurrentTrustAnchors = []byte(s.TrustAnchors)
	c.KubeClusterDomain = s.ClusterDomain
	c.SchedulerEnabled = s.Scheduler
	c.EnableNativeSidecar = s.NativeSidecar
	if s.Actors {
		c.PlacementAddress = patcher.ServicePlacement.Address(s.Namespace, s.ClusterDomain)
	}
	c.SidecarImage = s.Image
	c.SetFromPodAnnotations()
	return c
}
