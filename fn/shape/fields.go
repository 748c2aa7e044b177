// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"maps"
	"strings"
)

// Field is what a slot is in a workload.
type Field uint8

// The fields that can be slots. Values of the fields up to Container are names: an injection may print them, so those that are equal are
// one slot. The others are only copied with the line that they are in.
const (
	none Field = iota
	// Name and Namespace are those of the workload.
	Name
	Namespace
	// ObjectLabel is a label of the workload, Selected a label that it selects, Label one of its pods.
	ObjectLabel
	Selected
	Label
	// Account is the name of the service account.
	Account
	// Container is the name of a container.
	Container
	// Checksum is an annotation of the pods whose key begins with checksum/.
	Checksum
	// Image, Variable, Argument and Command are of containers; Reference is a name or key of a ConfigMap, Secret or claim.
	Image
	Variable
	Argument
	Command
	Reference
	// Volume is the same in a volume.
	Volume
	// Quantity is one of a container's resources, Replicas the workload's.
	Quantity
	Replicas
	// Origin is an annotation of an orchestrator: the path or index of the object.
	Origin

	fields
)

// isName reports whether values of the field have numbers by their equality.
func (f Field) isName() bool { return f >= Name && f <= Container }

// Rules are the fields that may be slots.
type Rules struct {
	// Free reports of each field whether an injection does no more than copy or print it. It is asked once.
	Free func(Field) bool
	// FreeLabel reports the same of a label's key, and is asked of each.
	FreeLabel func(key string) bool
	// Reserved reports whether a name is a word that templates or the injection may compare with.
	Reserved func(name string) bool
	// KnownNamespace reports whether more is known of a namespace than its name.
	KnownNamespace func(name string) bool
}

// node is a place in a workload.
type node struct {
	keys map[string]*node
	any  *node // of other keys
	elem *node // of the elements of a sequence
	slot Field
	// block reports that a mapping that is not in block style makes the text unknown, as slots in it would be missed.
	block bool
	what  role
}

// role is what the scan has to do at a node.
type role uint8

const (
	plainRole role = iota
	objectName
	objectNamespace
	accountName
	containerName
	originAnnotations
	podAnnotations
)

// workloadTree describes Deployments, StatefulSets and DaemonSets.
var workloadTree = func() *node {
	leaf := func(f Field) *node { return &node{slot: f} }
	mapping := func(keys map[string]*node) *node { return &node{keys: keys} }
	reference := mapping(map[string]*node{"name": leaf(Reference), "key": leaf(Reference)})
	quantities := mapping(map[string]*node{"cpu": leaf(Quantity), "memory": leaf(Quantity)})
	container := map[string]*node{
		"name":  {slot: Container, what: containerName},
		"image": leaf(Image),
		"env": {elem: mapping(map[string]*node{"value": leaf(Variable), "valueFrom": mapping(map[string]*node{
			"secretKeyRef": reference, "configMapKeyRef": reference})})},
		"envFrom":   {elem: mapping(map[string]*node{"configMapRef": reference, "secretRef": reference})},
		"resources": mapping(map[string]*node{"requests": quantities, "limits": quantities}),
	}
	application := maps.Clone(container) // what an init container runs is read: it may wait for the proxy
	application["args"], application["command"] = &node{elem: leaf(Argument)}, &node{elem: leaf(Command)}
	volume := mapping(map[string]*node{
		"configMap":             mapping(map[string]*node{"name": leaf(Volume)}),
		"secret":                mapping(map[string]*node{"secretName": leaf(Volume)}),
		"persistentVolumeClaim": mapping(map[string]*node{"claimName": leaf(Volume)}),
	})
	podSpec := &node{block: true, keys: map[string]*node{
		"serviceAccountName": {slot: Account, what: accountName},
		"containers":         {block: true, elem: mapping(application)},
		"initContainers":     {block: true, elem: mapping(container)},
		"volumes":            {elem: volume},
	}}
	template := &node{block: true, keys: map[string]*node{
		"metadata": mapping(map[string]*node{"labels": {any: leaf(Label)}, "annotations": {any: leaf(Checksum), what: podAnnotations}}),
		"spec":     podSpec,
	}}
	return &node{block: true, keys: map[string]*node{
		"metadata": {block: true, keys: map[string]*node{
			"name":        {slot: Name, what: objectName},
			"namespace":   {slot: Namespace, what: objectNamespace},
			"labels":      {any: leaf(ObjectLabel)},
			"annotations": {any: leaf(Origin), what: originAnnotations},
		}},
		"spec": {block: true, keys: map[string]*node{
			"replicas": leaf(Replicas),
			"selector": mapping(map[string]*node{"matchLabels": {any: leaf(Selected)}}),
			"template": template,
		}},
	}}
}()

// child returns the node of a key; nil where nothing below it is a slot.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	if c := n.keys[key]; c != nil {
		return c
	}
	return n.any
}

// originPrefixes begin the annotations that orchestrators write on the objects of a ResourceList.
var originPrefixes = []string{"internal.config.kubernetes.io/", "config.kubernetes.io/"}

// originMark is in the names of all annotations that have the origin.
const originMark = "config.kubernetes.io/"

// isOrchestrators reports whether an annotation is what an orchestrator notes on an object and nothing else reads.
func isOrchestrators(key string) bool {
	return strings.HasPrefix(key, originPrefixes[0]) || strings.HasPrefix(key, originPrefixes[1]) || strings.HasPrefix(key, "config.k8s.io/")
}

// originPart returns which part of the origin an annotation is: index into Scan.Origin, or -1.
func originPart(key string) int {
	for i, prefix := range originPrefixes {
		rest, ok := strings.CutPrefix(key, prefix)
		switch {
		case !ok:
		case rest == "path":
			return 2 * i
		case rest == "index":
			return 2*i + 1
		}
	}
	return -1
}
