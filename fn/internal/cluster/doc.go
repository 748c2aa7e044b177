// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane and istiod as processes of this machine, without containers:
// etcd, kube-apiserver, kube-controller-manager and pilot-discovery, all built from their own modules. It has no
// kubelet and no scheduler, so pods stay Pending; that is enough to see how admission and the controllers process a
// workload.
//
// Its tests compare the pods that a cluster with Istio's webhook creates from raw workloads with those that a
// cluster without it creates from Prerig's output. They run if PRERIG_CLUSTER is set; make e2e-cluster sets it.
package cluster
