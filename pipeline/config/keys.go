// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "reflect"

// Keys returns the keys at the top of a configuration file.
func Keys() []string {
	t := reflect.TypeFor[Config]()
	keys := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("mapstructure"); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}
