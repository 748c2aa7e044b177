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
		{"hostPath": g.withOptionalField(object{"path": "/x"}, "type", "", "Directory", nil)},
		{"secret": g.withOptionalField(object{"secretName": "s"}, "defaultMode", int64(0), int64(420), int64(256), nil)},
		{"configMap": g.withOptionalField(object{"name": "c"}, "defaultMode", int64(0), int64(420), nil)},
		{"downwardAPI": map[string]any{"items": []any{g.item()}}},
		{"projected": map[string]any{"sources": []any{
			map[string]any{"downwardAPI": map[string]any{"items": []any{g.item()}}},
			map[string]any{"serviceAccountToken": g.withOptionalField(object{"path": "t"}, "expirationSeconds", int64(600), nil)},
			map[string]any{"configMap": map[string]any{"name": "c"}},
		}}},
		{"iscsi": g.withOptionalField(object{"targetPortal": "p", "iqn": "i", "lun": int64(0)}, "iscsiInterface", "", "default", "x", nil)},
		{"rbd": g.withOptionalField(object{"image": "i", "monitors": []any{"m"}}, "pool", "", "rbd", "x", nil)},
		{"azureDisk": g.withOptionalField(object{"diskName": "d", "diskURI": "u"}, "cachingMode", "None", "ReadWrite", nil)},
		{"azureDisk": g.withOptionalField(object{"diskName": "d", "diskURI": "u", "readOnly": true, "kind": "Managed"}, "fsType", "", "xfs", nil)},
		{"scaleIO": g.withOptionalField(object{"gateway": "g", "system": "s", "secretRef": map[string]any{"name": "x"}}, "fsType", "", "xfs", "ext4", nil)},
		{"image": g.withOptionalField(object{"reference": g.choiceOf(images...)()}, "pullPolicy", "", "Always", "Never", nil)},
		{"ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{
			"spec": g.withOptionalField(object{"resources": map[string]any{"requests": map[string]any{"storage": "1000Mi"}}}, "volumeMode", "Block", nil)}}},
		{"nfs": map[string]any{"server": "s", "path": "/"}}, {"csi": map[string]any{"driver": "d"}},
	}
}

// withOptionalField returns a source in which one more field may be.
func (g *Generator) withOptionalField(source object, key string, values ...any) map[string]any {
	out := map[string]any(source)
	g.setFieldSometimes(out, key, g.choiceOf(values...))
	return out
}

func (g *Generator) item() map[string]any {
	return map[string]any{"path": "p", "fieldRef": g.withOptionalField(object{"fieldPath": "metadata.labels"}, "apiVersion", "", "v1", nil)}
}
