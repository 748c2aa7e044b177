// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package defaulter

import "fmt"

// volumes makes some volumes, each of another source.
func (g *Generator) volumes() []any {
	var out []any
	for i, source := range g.sources() {
		if _, image := source["image"]; g.rnd.IntN(3) > 0 || image && g.minor < imageVolumes {
			continue
		}
		v := map[string]any{"name": fmt.Sprintf("v-%d", i)}
		for key, value := range source {
			v[key] = value
		}
		out = append(out, v)
	}
	return out
}

// sources are all sources that have defaults, and some that have none.
func (g *Generator) sources() []map[string]any {
	return []map[string]any{
		{}, {"emptyDir": map[string]any{}}, {"emptyDir": nil}, {"persistentVolumeClaim": map[string]any{"claimName": "c"}},
		{"hostPath": g.with(object{"path": "/x"}, "type", "", "Directory", nil)},
		{"secret": g.with(object{"secretName": "s"}, "defaultMode", int64(0), int64(420), int64(256), nil)},
		{"configMap": g.with(object{"name": "c"}, "defaultMode", int64(0), int64(420), nil)},
		{"downwardAPI": map[string]any{"items": []any{g.item()}}},
		{"projected": map[string]any{"sources": []any{
			map[string]any{"downwardAPI": map[string]any{"items": []any{g.item()}}},
			map[string]any{"serviceAccountToken": g.with(object{"path": "t"}, "expirationSeconds", int64(600), nil)},
			map[string]any{"configMap": map[string]any{"name": "c"}},
		}}},
		{"iscsi": g.with(object{"targetPortal": "p", "iqn": "i", "lun": int64(0)}, "iscsiInterface", "", "default", "x", nil)},
		{"rbd": g.with(object{"image": "i", "monitors": []any{"m"}}, "pool", "", "rbd", "x", nil)},
		{"azureDisk": g.with(object{"diskName": "d", "diskURI": "u"}, "cachingMode", "None", "ReadWrite", nil)},
		{"azureDisk": g.with(object{"diskName": "d", "diskURI": "u", "readOnly": true, "kind": "Managed"}, "fsType", "", "xfs", nil)},
		{"scaleIO": g.with(object{"gateway": "g", "system": "s", "secretRef": map[string]any{"name": "x"}}, "fsType", "", "xfs", "ext4", nil)},
		{"image": g.with(object{"reference": g.of(images...)()}, "pullPolicy", "", "Always", "Never", nil)},
		{"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{
			"spec": g.with(object{"resources": map[string]any{"requests": map[string]any{"storage": "1000Mi"}}}, "volumeMode", "Block", nil)}}},
		{"nfs": map[string]any{"server": "s", "path": "/"}}, {"csi": map[string]any{"driver": "d"}},
	}
}

// with returns a source in which one more field may be.
func (g *Generator) with(source object, key string, values ...any) map[string]any {
	out := map[string]any(source)
	g.maybe(out, key, g.of(values...))
	return out
}

func (g *Generator) item() map[string]any {
	return map[string]any{"path": "p", "fieldRef": g.with(object{"fieldPath": "metadata.labels"}, "apiVersion", "", "v1", nil)}
}
