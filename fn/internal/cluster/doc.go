// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane and istiod as processes of this machine, without containers: etcd,
// kube-apiserver, kube-controller-manager and pilot-discovery, all built from their own modules. There is no kubelet and no
// scheduler, so pods stay Pending; that is enough to see what admission and the controllers make of a workload.
//
// Its tests compare the pods that a cluster with Istio's webhook makes of raw workloads with those that a cluster without
// it makes of Prerig's output. They run where PRERIG_CLUSTER is set; make e2e-cluster sets it.
package cluster
