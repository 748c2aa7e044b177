// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Given maps policies, as NAMESPACE/NAME, to their snapshots: they replace a cluster, and policies that are objects
// of one. It must not be modified while in use.
type Given map[string]*Completed

// Add adds the text of a snapshot.
func (g Given) Add(text []byte) error {
	policy, err := v1alpha1.Parse(text)
	if err != nil {
		return err
	}
	if policy.Spec.From != "" {
		return errors.New("it is a policy that is completed from a cluster, and not what it was completed to; prerig daemon snapshot prints that")
	}
	one, err := newCompleted(policy, "")
	if err != nil {
		return err
	}
	key := policy.Metadata.Namespace + "/" + policy.Metadata.Name
	if g[key] != nil {
		return fmt.Errorf("the policy %s is given twice", key)
	}
	g[key] = one
	return nil
}

// Policy returns the snapshot of a policy that is an object.
func (g Given) Policy(namespace, name string) ([]byte, error) {
	one := g[namespace+"/"+name]
	if one == nil {
		return nil, fmt.Errorf("no snapshot of the InjectionPolicy %s/%s is given (--snapshot)", namespace, name)
	}
	return one.text, nil
}

// Complete returns the snapshot of a policy with from: Cluster.
func (g Given) Complete(_ string, text []byte) (*Completed, error) {
	policy, err := v1alpha1.Parse(text)
	if err != nil || policy.Spec.From != v1alpha1.FromCluster {
		return nil, nil // the consumer will report what is wrong
	}
	one := g[policy.Metadata.Namespace+"/"+policy.Metadata.Name]
	if one == nil {
		return nil, fmt.Errorf("no snapshot of the policy %s is given (--snapshot)", policy.Metadata.Name)
	}
	return one, nil
}
